// How kernels printed for CUDA use memory, which needs no GPU to be seen. The test
// CudaTraffic.Table prints a table:
//
//   build/torch_lazy_tests --gtest_filter='CudaTraffic.*'
//
// What its columns say: sectors touched for each that was needed, and bytes that threads read for
// each different one. 1.00 is all that can be wished for; a cache makes the second cheaper. Where
// NVIDIA's compiler is installed, registers of a thread and the widest access follow.

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "emulated_plan.h"
#include "nvrtc.h"

namespace torch_lazy {
namespace {

using testing::Handle;
using testing::KernelReport;
using testing::number;
using testing::TapeBuilder;
using Handles = TapeBuilder::Handles;

const c10::IValue kNone;

// As large as GPUs of data centers are.
constexpr codegen::GpuLimits kGpu{
    .multiprocessors = 128, .threads_per_multiprocessor = 2048, .shared_bytes_of_block = 227 << 10};

// What the kernels of a case may come to at most.
struct Bounds {
  double loads = 1.05, stores = 1.05;  // sectors touched / needed
  double read = 1.02;                  // bytes read / different
  bool wide = true;                    // memory is accessed by 16 bytes a thread
};

struct Case {
  const char* name;
  std::function<Handle(TapeBuilder&)> record;
  Bounds bounds = {};
};

// Of rows that begin at no multiple of 16 bytes, and differently in every tensor.
constexpr Bounds kUnaligned{.loads = 1.25, .stores = 1.25};
// Every other element is in sectors that are needed whole.
constexpr Bounds kSparse{.loads = 1.55, .wide = false};
// The weights are read for each row; they stay in caches.
constexpr Bounds kWeighted{.read = 3.0};
// A row of which a block has no place for half: that is read by each sweep.
constexpr Bounds kPartlyHeld{.read = 2.0};
// A thread an element of a warp's row.
constexpr Bounds kNarrow{.wide = false};

// gelu(x * y + 1)
Handle chain(TapeBuilder& window, const at::Tensor& x, const at::Tensor& y) {
  const Handle a = window.input(x), b = window.input(y);
  const Handle product = window.call("aten::mul", "Tensor", {a, b})[0];
  const Handle sum = window.call("aten::add", "Tensor", {product, number(1.0), 1})[0];
  return window.call("aten::gelu", "", {sum, "none"})[0];
}

Handle chain(TapeBuilder& window, at::IntArrayRef sizes, c10::ScalarType type) {
  return chain(window, at::randn(sizes, type), at::randn(sizes, type));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"pointwise float",
       [](TapeBuilder& w) {
         return chain(w, {256, 512}, at::kFloat);
       }},
      {"pointwise bfloat16",
       [](TapeBuilder& w) {
         return chain(w, {256, 512}, at::kBFloat16);
       }},
      {"pointwise odd sizes",
       [](TapeBuilder& w) {
         return chain(w, {253, 509}, at::kFloat);
       }},
      {"pointwise odd rows of a larger tensor",
       [](TapeBuilder& w) {
         const at::Tensor x = at::randn({256, 515});
         return chain(w, x.narrow(1, 1, 509), at::randn({256, 509}));
       },
       kUnaligned},
      {"pointwise every other column",
       [](TapeBuilder& w) {
         return chain(w, at::randn({256, 1024}).slice(1, 0, 1024, 2), at::randn({256, 512}));
       },
       kSparse},
      {"softmax",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({128, 1000})), -1, false})[0];
       }},
      {"softmax bfloat16",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "",
                       {w.input(at::randn({128, 1000}, at::kBFloat16)), -1, false})[0];
       }},
      {"softmax of odd rows",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({128, 1001})), -1, false})[0];
       }},
      {"softmax of long rows",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({17, 20000})), -1, false})[0];
       }},
      {"softmax of rows too long for registers",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({16, 40000})), -1, false})[0];
       }},
      {"softmax of 65536 columns",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({16, 65536})), -1, false})[0];
       }},
      {"softmax of 50257 columns",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({16, 50257})), -1, false})[0];
       }},
      {"softmax bfloat16 of 65536 columns",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "",
                       {w.input(at::randn({16, 65536}, at::kBFloat16)), -1, false})[0];
       }},
      {"softmax of 128256 columns",
       [](TapeBuilder& w) {
         return w.call("aten::_softmax", "", {w.input(at::randn({16, 128256})), -1, false})[0];
       },
       kPartlyHeld},
      {"log softmax bfloat16",
       [](TapeBuilder& w) {
         return w.call("aten::_log_softmax", "",
                       {w.input(at::randn({64, 5000}, at::kBFloat16)), -1, false})[0];
       }},
      {"softmax backward",
       [](TapeBuilder& w) {
         const Handle gradient = w.input(at::randn({128, 1000}));
         const Handle result = w.input(at::randn({128, 1000}).softmax(1));
         return w.call("aten::_softmax_backward_data", "", {gradient, result, -1, at::kFloat})[0];
       }},
      {"layer norm",
       [](TapeBuilder& w) {
         const Handle x = w.input(at::randn({128, 768}));
         const Handle weight = w.input(at::randn({768})), bias = w.input(at::randn({768}));
         return w.call("aten::native_layer_norm", "",
                       {x, std::vector<int64_t>{768}, weight, bias, 1e-5})[0];
       },
       kWeighted},
      {"row sum",
       [](TapeBuilder& w) {
         return w.call("aten::sum", "dim_IntList",
                       {w.input(at::randn({128, 1000})), std::vector<int64_t>{1}, false, kNone})[0];
       }},
      {"column sum",
       [](TapeBuilder& w) {
         return w.call("aten::sum", "dim_IntList",
                       {w.input(at::randn({512, 256})), std::vector<int64_t>{0}, false, kNone})[0];
       },
       kNarrow},
      {"column sum of bfloat16",
       [](TapeBuilder& w) {
         return w.call("aten::sum", "dim_IntList",
                       {w.input(at::randn({4096, 64}, at::kBFloat16)), std::vector<int64_t>{0},
                        false, kNone})[0];
       },
       kNarrow},
      {"sums of few rows",
       [](TapeBuilder& w) {
         return w.call("aten::sum", "dim_IntList",
                       {w.input(at::randn({3, 70001})), std::vector<int64_t>{1}, false, kNone})[0];
       },
       kUnaligned},
      {"sum of all",
       [](TapeBuilder& w) {
         return w.call("aten::sum", "", {w.input(at::randn({512, 256})), kNone})[0];
       }},
      {"transpose and add",
       [](TapeBuilder& w) {
         const Handle x = w.input(at::randn({256, 256})), y = w.input(at::randn({256, 256}));
         const Handle t = w.call("aten::t", "", {x})[0];
         return w.call("aten::add", "Tensor", {y, t, 1})[0];
       },
       kNarrow},
  };
  return kCases;
}

double ratio(int64_t a, int64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

bool has_wide_access(const std::string& ptx) {
  for (const char* type : {".v4.f32", ".v4.u32", ".v4.b32", ".v2.f64", ".v2.u64", ".v2.b64"}) {
    if (ptx.find(type) != std::string::npos) return true;
  }
  return false;
}

// As NVIDIA's compiler makes it.
void check_machine_code(const KernelReport& kernel, const Bounds& bounds, bool is_main) {
  const testing::Nvrtc& nvrtc = testing::Nvrtc::get();
  const testing::NvrtcResult result = nvrtc.compile(kernel.source, "sm_90");
  EXPECT_TRUE(result.compiled) << result.log << kernel.source;
  EXPECT_EQ(result.spilled_bytes, 0) << result.log << kernel.source;
  const bool wide = has_wide_access(nvrtc.ptx(kernel.source, "compute_90"));
  EXPECT_TRUE(!is_main || wide == bounds.wide) << kernel.source;
  std::printf(" %9d %5s", result.registers, wide ? "wide" : "");
}

void print_row(const std::string& name, const KernelReport& kernel) {
  const simt::Traffic& loads = kernel.report.loads;
  const simt::Traffic& stores = kernel.report.stores;
  std::printf(
      "%-40s %-28.28s %13s %7.2f %7.2f %9.2f %9lld %9lld", name.c_str(), kernel.kernel.c_str(),
      simt::to_string(kernel.block).c_str(), ratio(loads.sectors, loads.sectors_needed),
      ratio(stores.sectors, stores.sectors_needed), ratio(loads.bytes, loads.distinct_bytes),
      static_cast<long long>(32 * (loads.sectors + stores.sectors) >> 10),
      static_cast<long long>((loads.distinct_bytes + stores.distinct_bytes) >> 10));
}

void expect_within(const KernelReport& kernel, const Bounds& bounds) {
  const simt::Traffic& loads = kernel.report.loads;
  const simt::Traffic& stores = kernel.report.stores;
  EXPECT_LE(ratio(loads.sectors, loads.sectors_needed), bounds.loads) << kernel.source;
  EXPECT_LE(ratio(stores.sectors, stores.sectors_needed), bounds.stores) << kernel.source;
  EXPECT_LE(ratio(loads.bytes, loads.distinct_bytes), bounds.read) << kernel.source;
}

// What was computed is eager's, within the last digits of the type, and no defect was found.
void expect_as_eager(const testing::EmulatedWindow& run, const at::Tensor& wanted) {
  ASSERT_EQ(run.outputs.size(), 1u);
  const double tolerance = wanted.scalar_type() == at::kFloat ? 1e-4 : 2e-2;
  EXPECT_TRUE(
      at::allclose(run.outputs[0].to(at::kDouble), wanted.to(at::kDouble), tolerance, tolerance));
  for (const KernelReport& kernel : run.kernels) {
    EXPECT_EQ(kernel.report.text(), "") << kernel.source;
  }
}

TEST(CudaTraffic, Table) {
  at::manual_seed(1);
  std::printf(
      "\nSectors touched / needed, bytes read / different, KiB moved / that have to be\n"
      "%-40s %-28s %13s %7s %7s %9s %9s %9s %9s\n",
      "", "kernel", "threads", "loads", "stores", "read", "moved", "least", "registers");
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.name);
    TapeBuilder window;
    const Handle result = each.record(window);

    const testing::EmulatedWindow run = testing::run_emulated(window, {result}, kGpu);

    expect_as_eager(run, result.tensor);
    ASSERT_FALSE(run.kernels.empty());
    for (const KernelReport& kernel : run.kernels) {
      print_row(each.name, kernel);
      check_machine_code(kernel, each.bounds, &kernel == run.kernels.data());
      std::printf("\n");
      expect_within(kernel, each.bounds);
    }
  }
}

}  // namespace
}  // namespace torch_lazy
