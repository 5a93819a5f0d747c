// Kernels from source: compiled once, refused with a message, and never at the process's cost.

#include "backend/cpu/kernel_compiler.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cpu/compiler_library.h"
#include "base/disk_cache.h"
#include "temporary_directory.h"

namespace torch_lazy {
namespace {

// A kernel of which `body` is all that differs; it sees float* x, y and long n.
std::string kernel_source(const std::string& body, const std::string& before = "") {
  return before +
         "\nextern \"C\" void kernel(void* const* pointers, const long* sizes, const double* "
         "numbers,"
         " long begin, long end) {\n"
         "  float* x = (float*)pointers[0]; float* y = (float*)pointers[1];\n"
         "  for (long i = begin; i < end; ++i) { " +
         body + " }\n}\n";
}

// Sources that no other test and no other repetition of this one has compiled.
std::string unseen(const std::string& source) {
  static std::atomic<int> count{0};
  return source + "// " + std::to_string(count++) + "\n";
}

std::vector<float> run(const CompiledKernel& kernel, std::vector<float> x) {
  std::vector<float> y(x.size());
  const std::array<void*, 2> pointers = {x.data(), y.data()};
  const std::array<int64_t, 1> sizes = {static_cast<int64_t>(x.size())};
  const std::array<double, 1> numbers = {0.5};
  kernel.function(pointers.data(), sizes.data(), numbers.data(), 0, sizes[0]);
  return y;
}

std::string error_of(const std::string& source, KernelTarget target = KernelTarget::kHost) {
  try {
    compile_kernel(source, "kernel", target);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

void expect_next_compile_works() {
  const auto kernel = compile_kernel(unseen(kernel_source("y[i] = x[i] + 1;")), "kernel");
  EXPECT_EQ(run(*kernel, {1, 2}), (std::vector<float>{2, 3}));
}

class ScopedLimits {
 public:
  explicit ScopedLimits(KernelCompileLimits limits) { set_kernel_compile_limits(limits); }
  ~ScopedLimits() { set_kernel_compile_limits({}); }
  ScopedLimits(const ScopedLimits&) = delete;
  ScopedLimits& operator=(const ScopedLimits&) = delete;
};

TEST(KernelCompiler, CompilesAKernelAndRunsIt) {
  const auto kernel =
      compile_kernel(kernel_source("y[i] = x[i] * numbers[0] + sizes[0];"), "kernel");
  EXPECT_EQ(run(*kernel, {2, 4, 6}), (std::vector<float>{4, 5, 6}));
}

TEST(KernelCompiler, CompilesAfterTheLibraryWasTrimmed) {
  expect_next_compile_works();

  trim_compiler_library();

  expect_next_compile_works();
}

TEST(KernelCompiler, EqualSourcesAreCompiledOnce) {
  const std::string source = unseen(kernel_source("y[i] = x[i];"));
  const KernelCompilerCounters before = kernel_compiler_counters();
  const auto first = compile_kernel(source, "kernel");
  const auto second = compile_kernel(source, "kernel");
  const KernelCompilerCounters after = kernel_compiler_counters();
  EXPECT_EQ(first, second);
  EXPECT_EQ(after.compiled, before.compiled + 1);
  EXPECT_EQ(after.cache_hits, before.cache_hits + 1);
  EXPECT_GT(after.compile_ns, before.compile_ns);
}

class KernelsOnDisk : public ::testing::Test {
 protected:
  const torch_lazy::tests::TemporaryDirectory directory_;
};

// What an object on disk is found by.
std::string disk_key(const std::string& source) {
  return kernel_target_description() + "\nkernel\n" + source;
}

TEST_F(KernelsOnDisk, ACompiledObjectIsPutThere) {
  DiskCache disk(directory_.path(), 1 << 20);
  const std::string source = unseen(kernel_source("y[i] = x[i] - 1;"));

  const auto kernel = compile_kernel(source, "kernel", KernelTarget::kHost, &disk);

  EXPECT_EQ(disk.get(disk_key(source)), kernel->object);
}

TEST_F(KernelsOnDisk, AnObjectThatIsThereIsNotCompiled) {
  DiskCache disk(directory_.path(), 1 << 20);
  const std::string source = unseen(kernel_source("y[i] = x[i];"));
  const auto other = compile_kernel(unseen(kernel_source("y[i] = 7;")), "kernel");
  disk.put(disk_key(source), other->object);
  const KernelCompilerCounters before = kernel_compiler_counters();

  const auto kernel = compile_kernel(source, "kernel", KernelTarget::kHost, &disk);

  EXPECT_EQ(run(*kernel, {1}), (std::vector<float>{7}));
  EXPECT_EQ(kernel_compiler_counters().compiled, before.compiled);
  EXPECT_EQ(kernel_compiler_counters().from_disk, before.from_disk + 1);
}

TEST_F(KernelsOnDisk, AnObjectThatCannotBeLoadedIsCompiledAndReplaced) {
  DiskCache disk(directory_.path(), 1 << 20);
  const std::string source = unseen(kernel_source("y[i] = x[i] * 3;"));
  disk.put(disk_key(source), "not an object");

  const auto kernel = compile_kernel(source, "kernel", KernelTarget::kHost, &disk);

  EXPECT_EQ(run(*kernel, {2}), (std::vector<float>{6}));
  EXPECT_EQ(disk.get(disk_key(source)), kernel->object);
}

TEST(KernelCompiler, EqualSourcesForTwoTargetsAreTwoKernels) {
  const std::string source = kernel_source("y[i] = x[i];");
  EXPECT_NE(compile_kernel(source, "kernel"),
            compile_kernel(source, "kernel", KernelTarget::kBaseline));
}

TEST(KernelCompiler, EqualSourcesAskedForByThreadsAtOnceAreCompiledOnce) {
  const std::string source = unseen(kernel_source("y[i] = x[i] * x[i];"));
  const int64_t before = kernel_compiler_counters().compiled;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { compile_kernel(source, "kernel"); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(kernel_compiler_counters().compiled, before + 1);
}

TEST(KernelCompiler, ThreadsCompileDifferentSourcesAtOnce) {
  constexpr int kThreads = 4, kKernels = 4;
  std::array<std::vector<float>, kThreads> results;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&results, i] {
      for (int j = 0; j < kKernels; ++j) {
        const std::string number = std::to_string(i * kKernels + j);
        const auto kernel =
            compile_kernel(unseen(kernel_source("y[i] = x[i] + " + number + ";")), "kernel");
        results[i].push_back(run(*kernel, {0}).front());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    for (int j = 0; j < kKernels; ++j) {
      EXPECT_EQ(results[i][j], static_cast<float>(i * kKernels + j));
    }
  }
}

TEST(KernelCompiler, AKernelOutlivesTheThreadThatCompiledIt) {
  std::shared_ptr<const CompiledKernel> kernel;
  std::thread([&] {
    kernel = compile_kernel(unseen(kernel_source("y[i] = -x[i];")), "kernel");
  }).join();
  EXPECT_EQ(run(*kernel, {3}), std::vector<float>{-3});
}

TEST(KernelCompiler, ASyntaxErrorIsReportedWithItsLine) {
  const std::string error = error_of("int a;\nint b;\nint c = nonsense;\n");
  EXPECT_NE(error.find("the kernel kernel does not compile"), std::string::npos) << error;
  EXPECT_NE(error.find("kernel.cc:3:9: error: use of undeclared identifier 'nonsense'"),
            std::string::npos)
      << error;
}

TEST(KernelCompiler, AnErrorAfterTheFrontEndIsReported) {
  const std::string error = error_of(kernel_source("asm(\"nop\");"));
  EXPECT_NE(error.find("asm not supported"), std::string::npos) << error;
  expect_next_compile_works();
}

TEST(KernelCompiler, ThereAreNoHeaders) {
  EXPECT_NE(error_of("#include <stddef.h>\n").find("file not found"), std::string::npos);
  EXPECT_NE(error_of("#include \"/etc/passwd\"\n").find("file not found"), std::string::npos);
}

TEST(KernelCompiler, AMissingFunctionIsNamed) {
  const std::string error =
      error_of(kernel_source("no_such_function();", "extern \"C\" void no_such_function();"));
  EXPECT_NE(error.find("cannot be loaded"), std::string::npos) << error;
  EXPECT_NE(error.find("no_such_function"), std::string::npos) << error;
  EXPECT_NE(error_of("int unrelated;").find("kernel"), std::string::npos);
}

TEST(KernelCompiler, AFailureIsCountedAndNotKept) {
  const int64_t before = kernel_compiler_counters().failed;
  error_of("nonsense");
  error_of("nonsense");
  EXPECT_EQ(kernel_compiler_counters().failed, before + 2);
}

// Clang's own switches for testing what happens when it goes wrong.
TEST(KernelCompiler, ACrashOfTheCompilerIsAnError) {
  EXPECT_NE(error_of("#pragma clang __debug crash\n").find("crashed with signal"),
            std::string::npos);
  expect_next_compile_works();
}

TEST(KernelCompiler, AStackThatOverflowsIsAnError) {
  EXPECT_NE(error_of("bool b = " + std::string(900'000, '!') + "1;").find("SIGSEGV"),
            std::string::npos);
  expect_next_compile_works();
}

TEST(KernelCompiler, AFatalErrorOfTheCompilerIsAnError) {
  EXPECT_NE(error_of("#pragma clang __debug llvm_fatal_error\n").find("the compiler stopped"),
            std::string::npos);
  expect_next_compile_works();
}

TEST(KernelCompiler, ASourceBeyondTheLimitIsRefused) {
  {
    const ScopedLimits limits({.source_bytes = 1000});
    const std::string error = error_of(std::string(1001, ' '));
    EXPECT_NE(error.find("1001 bytes, and the limit is 1000"), std::string::npos) << error;
  }
  expect_next_compile_works();
}

TEST(KernelCompiler, ACompileBeyondItsTimeGivesUp) {
  {
    const ScopedLimits limits({.nanoseconds = 1});
    EXPECT_NE(error_of(unseen(kernel_source("y[i] = x[i];"))).find("time limit"),
              std::string::npos);
  }
  expect_next_compile_works();
}

TEST(KernelCompiler, ACompileThatMayTakeAsLongAsItNeedsDoesNotGiveUp) {
  const ScopedLimits limits({.nanoseconds = 1});

  EXPECT_NO_THROW(compile_kernel(unseen(kernel_source("y[i] = x[i];")), "kernel",
                                 KernelTarget::kHost, nullptr, CompileTime::kUnlimited));
}

TEST(KernelCompiler, SignalHandlersAreTheProcessesOwnAfterACompile) {
  struct sigaction before, after, own{};
  own.sa_handler = [](int) { std::_Exit(1); };
  sigaction(SIGSEGV, &own, &before);
  expect_next_compile_works();
  error_of("#pragma clang __debug crash\n");
  sigaction(SIGSEGV, &before, &after);
  EXPECT_EQ(after.sa_handler, own.sa_handler);
}

TEST(KernelCompiler, ExceptionsOfTorchPassBetweenCompiles) {
  expect_next_compile_works();
  EXPECT_THROW(TORCH_CHECK(false, "raised after a compile"), c10::Error);
  EXPECT_NE(error_of("nonsense"), "");
  EXPECT_THROW(TORCH_CHECK_INDEX(false, "raised after a failed compile"), c10::IndexError);
  expect_next_compile_works();
}

TEST(KernelCompiler, ListsAssemblyAndIr) {
  const std::string source = kernel_source("y[i] = x[i] + 1;");
  EXPECT_NE(kernel_listing(source, KernelListing::kAssembly).find("kernel:"), std::string::npos);
  EXPECT_NE(kernel_listing(source, KernelListing::kLlvmIr).find("define"), std::string::npos);
}

TEST(KernelCompiler, AnObjectLoadsWithoutACompile) {
  const auto compiled = compile_kernel(kernel_source("y[i] = x[i] + 1;"), "kernel");
  const int64_t before = kernel_compiler_counters().compiled;
  const auto loaded = load_kernel(compiled->object, "kernel");
  EXPECT_EQ(kernel_compiler_counters().compiled, before);
  EXPECT_NE(loaded->function, compiled->function);
  EXPECT_EQ(run(*loaded, {1}), std::vector<float>{2});
}

TEST(KernelCompiler, BytesThatAreNoObjectDoNotLoad) {
  EXPECT_THROW(load_kernel("not an object", "kernel"), std::runtime_error);
  EXPECT_THROW(load_kernel("", "kernel"), std::runtime_error);
}

TEST(KernelCompiler, ATargetIsDescribedForCacheKeys) {
  const std::string description = kernel_target_description();
  EXPECT_NE(description.find("19."), std::string::npos) << description;
  EXPECT_EQ(description.find("avx10"), std::string::npos) << description;
  EXPECT_NE(description, kernel_target_description(KernelTarget::kBaseline));
}

// What a multiplication and an addition leave when they are not contracted into an fma.
TEST(KernelCompiler, FloatingPointStaysAsWritten) {
  const auto kernel = compile_kernel(
      kernel_source(
          "y[i] = x[i] * x[i] - 1.0f; float t = x[i] + 12582912.f; y[i] += (t - 12582912.f);"),
      "kernel");
  const float x = 1.0f + 0x1p-12f;
  const volatile float square = x * x;
  EXPECT_EQ(run(*kernel, {x}), std::vector<float>{(square - 1.0f) + 1.0f});
}

#if defined(__x86_64__)

TEST(KernelCompiler, CompilesForAvx2) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "the machine has no AVX2";
  const std::string source = kernel_source(
      "y[i] = x[i] + 1;", "static_assert(__AVX2__);\n#ifdef __AVX512F__\n#error\n#endif");
  EXPECT_EQ(run(*compile_kernel(source, "kernel", KernelTarget::kAvx2), {1}),
            std::vector<float>{2});
  EXPECT_EQ(kernel_vector_bits(KernelTarget::kAvx2), 256);
}

TEST(KernelCompiler, CompilesForTheBaseline) {
  const std::string source = kernel_source("y[i] = x[i] + 1;", "#ifdef __AVX__\n#error\n#endif");
  EXPECT_EQ(run(*compile_kernel(source, "kernel", KernelTarget::kBaseline), {1}),
            std::vector<float>{2});
  EXPECT_EQ(kernel_vector_bits(KernelTarget::kBaseline), 128);
}

TEST(KernelCompiler, TheHostsWidestVectorsAreUsed) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "the machine has no AVX-512";
  const std::string source =
      kernel_source("*(Vector*)(y + i) = *(Vector*)(x + i) + 1;",
                    "typedef float Vector __attribute__((vector_size(64), aligned(4)));");
  EXPECT_EQ(kernel_vector_bits(), 512);
  EXPECT_NE(kernel_listing(source, KernelListing::kAssembly).find("%zmm"), std::string::npos);
}

TEST(KernelCompiler, FindsVectorFunctionsOfPyTorch) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "the machine has no AVX2";
  const std::string source = R"(
    typedef float Vector __attribute__((vector_size(32), aligned(4)));
    extern "C" Vector Sleef_expf8_u10(Vector);
    extern "C" void kernel(void* const* pointers, const long*, const double*, long begin, long end) {
      const float* x = (const float*)pointers[0];
      float* y = (float*)pointers[1];
      for (long i = begin; i < end; i += 8) *(Vector*)(y + i) = Sleef_expf8_u10(*(Vector*)(x + i));
    })";
  const std::vector<float> x = {0, 1, 2, 3, -1, -2, -3, 10};
  const std::vector<float> y = run(*compile_kernel(source, "kernel", KernelTarget::kAvx2), x);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], std::exp(x[i]));
}

// Constants in the file of this program, in a page that nobody reads.
volatile const double far_constants[1 << 16] = {1};
constexpr size_t kFarConstant = 1 << 15;

extern "C" [[gnu::visibility("default")]] double torch_lazy_test_adds_far_constant(double x) {
  return x + far_constants[kFarConstant];
}

// Whether the process has the page in its page table (Linux, pagemap(5): bit 63).
bool is_mapped(const volatile void* address) {
  const auto page = reinterpret_cast<uintptr_t>(address) / uintptr_t(sysconf(_SC_PAGESIZE));
  const int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uint64_t entry = 0;
  const ssize_t bytes = pread(pages, &entry, sizeof entry, off_t(page * sizeof entry));
  close(pages);
  EXPECT_EQ(bytes, ssize_t(sizeof entry));
  return entry >> 63 != 0;
}

TEST(KernelCompiler, MapsTheConstantsOfFunctionsThatKernelsCall) {
#if defined(MADV_POPULATE_READ)
  // A repetition in this process could not fail: each function is looked at once.
  static bool ran = false;
  if (std::exchange(ran, true)) GTEST_SKIP() << "the page stays mapped after the first time";
  const std::string source =
      unseen(kernel_source("y[i] = torch_lazy_test_adds_far_constant(x[i]);",
                           "extern \"C\" double torch_lazy_test_adds_far_constant(double);"));
  ASSERT_FALSE(is_mapped(&far_constants[kFarConstant]));

  compile_kernel(source, "kernel");

  EXPECT_TRUE(is_mapped(&far_constants[kFarConstant]));
#else
  GTEST_SKIP() << "the system maps no pages on request";
#endif
}

#endif  // __x86_64__

using KernelCompilerDeathTest = ::testing::Test;

TEST(KernelCompilerDeathTest, AMissingLibrarySaysWhatToDo) {
  // In a new process, which has not opened the library yet.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("TORCH_LAZY_COMPILER_LIBRARY", "/nowhere/library.so", 1);
        std::fputs(error_of(kernel_source("")).c_str(), stderr);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0),
      "/nowhere/library.so cannot be loaded.*falls back to the reference backend.*Install "
      "torch_lazy "
      "again.*TORCH_LAZY_COMPILER_LIBRARY");
}

TEST(KernelCompilerDeathTest, AForkedChildCompiles) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto kernel = compile_kernel(kernel_source("y[i] = x[i] + 1;"), "kernel");
  EXPECT_EXIT(
      {
        const auto own = compile_kernel(unseen(kernel_source("y[i] = x[i] + 2;")), "kernel");
        const bool right = run(*kernel, {1}).front() == 2 && run(*own, {1}).front() == 3;
        std::_Exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace torch_lazy
