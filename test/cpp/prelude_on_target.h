// Functions of the prelude, called in kernels that are compiled for each instruction set that this
// machine has, and for CUDA in kernels that the emulator runs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "backend/cpu/kernel_compiler.h"
#include "codegen/prelude.h"
#include "simt/launch.h"

namespace torch_lazy {

inline std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

struct PreludeTarget {
  const char* name;
  std::optional<KernelTarget> cpu;  // else CUDA
};

inline std::vector<PreludeTarget> cpu_prelude_targets() {
  return {{"Host", KernelTarget::kHost},
          {"Avx2", KernelTarget::kAvx2},
          {"Baseline", KernelTarget::kBaseline}};
}

// Instantiated in prelude_test.cpp, for the CPU.
class PreludeOnTargetTest : public testing::TestWithParam<PreludeTarget> {
 protected:
  void SetUp() override {
    if (GetParam().cpu && kernel_vector_bits(*GetParam().cpu) > kernel_vector_bits()) {
      GTEST_SKIP() << "this machine lacks the instructions";
    }
  }

  int lanes() const { return kernel_vector_bits(*GetParam().cpu) / 32; }
  codegen::Target target() const { return {.lanes = lanes()}; }

  // A kernel of `body`, which sees pointers p[0] ..., and begin and end.
  KernelFunction compile(const std::set<std::string>& functions, const std::string& body) {
    kernel_ = compile_kernel(
        codegen::prelude_for(target(), functions) +
            "extern \"C\" void kernel(void* const* p, const int64* sizes, const double* numbers,\n"
            "                       int64 begin, int64 end) {\n" +
            body + "\n}\n",
        "kernel", *GetParam().cpu);
    return kernel_->function;
  }

  static std::string storage(const std::string& type) {
    if (type == "bfloat16" || type == "half") return "unsigned short";
    return type == "bool" || type.starts_with("float8") ? "unsigned char" : type;
  }

 private:
  std::shared_ptr<const CompiledKernel> kernel_;
};

// Of elements, one by one: on CUDA too. Instantiated in prelude_numbers_test.cpp.
class PreludeNumbersTest : public PreludeOnTargetTest {
 protected:
  // `result[i] = function(a[i], b[i])` by vectors, with the end of the arrays masked.
  template <class A, class R>
  std::vector<R> map(const std::string& function, const std::string& type,
                     const std::string& result_type, const std::vector<A>& a,
                     const std::vector<A>& b = {}, const std::string& value = "") {
    if (!GetParam().cpu) return map_on_cuda<A, R>(function, type, result_type, a, b, value);
    const std::string load = "lazy_load_" + type, store = "lazy_store_" + result_type;
    const auto loads = [&](const std::string& arguments) {
      return load + "(a + i" + arguments + ")" +
             (b.empty() ? "" : ", " + load + "(b + i" + arguments + ")");
    };
    const KernelFunction kernel =
        compile({function + ":v_" + (value.empty() ? type : value), load, load + ":int", store,
                 store + ":int"},
                "auto* a = (const " + storage(type) + "*)p[0], *b = (const " + storage(type) +
                    "*)p[1];\n" + "auto* result = (" + storage(result_type) + "*)p[2];\n" +
                    "int64 i = begin;\n"
                    "for (; i + LAZY_LANES <= end; i += LAZY_LANES)\n  " +
                    store + "(result + i, " + function + "(" + loads("") + "));\n" +
                    "if (i < end) { const int n = end - i; " + store + "(result + i, " + function +
                    "(" + loads(", n") + "), n); }");
    std::vector<R> result(a.size());
    void* const pointers[] = {const_cast<A*>(a.data()), const_cast<A*>(b.data()), result.data()};
    kernel(pointers, nullptr, nullptr, 0, static_cast<int64_t>(a.size()));
    return result;
  }

  // The same one by one, through the scalar functions.
  template <class T>
  std::vector<T> map_scalars(const std::string& function, const std::string& type,
                             const std::vector<T>& a) {
    if (!GetParam().cpu) return map_on_cuda<T, T>(function, type, type, a, {}, type);
    const KernelFunction kernel =
        compile({function + ":" + type, "lazy_get_" + type, "lazy_put_" + type},
                "auto* a = (const " + type + "*)p[0];\nauto* result = (" + type + "*)p[1];\n" +
                    "for (int64 i = begin; i < end; ++i) lazy_put_" + type + "(result + i, " +
                    function + "(lazy_get_" + type + "(a + i)));");
    std::vector<T> result(a.size());
    void* const pointers[] = {const_cast<T*>(a.data()), result.data()};
    kernel(pointers, nullptr, nullptr, 0, static_cast<int64_t>(a.size()));
    return result;
  }

 private:
  // An element a thread.
  template <class A, class R>
  static std::vector<R> map_on_cuda(const std::string& function, const std::string& type,
                                    const std::string& result_type, const std::vector<A>& a,
                                    const std::vector<A>& b, const std::string& value) {
    const std::string load = "lazy_load_" + type, store = "lazy_store_" + result_type;
    const auto program = simt::Program::compile(
        codegen::prelude_for({.kind = codegen::Target::Kind::kCuda},
                             {function + ":" + (value.empty() ? type : value), load, store}) +
        "extern \"C\" __global__ void kernel(const " + storage(type) + "* a, const " +
        storage(type) + "* b, " + storage(result_type) + "* result, int64 n) {\n" +
        "const int64 i = blockIdx.x * blockDim.x + threadIdx.x;\n" + "if (i < n) " + store +
        "(result + i, " + function + "(" + load + "(a + i)" +
        (b.empty() ? "" : ", " + load + "(b + i)") + "));\n}\n");
    simt::DeviceMemory memory;
    void* on_device[] = {memory.upload(a.data(), a.size() * sizeof(A), sizeof(A), "a"),
                         memory.upload(b.data(), b.size() * sizeof(A), sizeof(A), "b"),
                         memory.allocate(a.size() * sizeof(R), sizeof(R), "result")};
    auto count = static_cast<int64_t>(a.size());
    void* parameters[] = {&on_device[0], &on_device[1], &on_device[2], &count};
    const auto blocks = static_cast<uint32_t>((a.size() + 255) / 256);
    const simt::Report report =
        simt::run(memory, {*program, "kernel", {blocks}, {256}, parameters});
    EXPECT_EQ(report.text(), "") << function;
    const auto* const result = static_cast<const R*>(on_device[2]);
    return {result, result + a.size()};
  }
};

}  // namespace torch_lazy
