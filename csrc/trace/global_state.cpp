// Reads at::Context and the thread's own modes without calling its getters on each operation.
//
// Several getters (allowTF32CuBLAS, float32MatmulPrecision, ...) warn or throw where a program
// mixes the old and the new precision settings, and forty calls cost more than recording an
// operation. So the private members are reached through explicit instantiation, the one place where
// C++ lifts access control, and "did anything change" is a comparison of the bytes between two of
// them.

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "trace/global_state.h"

namespace torch_lazy {
namespace {

// Each tag names a private member: `context.*member(Tag{})`.
template <class Tag, auto Member>
struct Expose {
  friend constexpr auto member(Tag) { return Member; }
};

#define TORCH_LAZY_EXPOSE(Tag, name)   \
  struct Tag {                         \
    friend constexpr auto member(Tag); \
  };                                   \
  template struct Expose<Tag, &at::Context::name>

TORCH_LAZY_EXPOSE(FirstSetting, enabled_cudnn);
TORCH_LAZY_EXPOSE(Float32Map, fp32_precision);
TORCH_LAZY_EXPOSE(MatmulPrecision, float32_matmul_precision);
TORCH_LAZY_EXPOSE(Tf32Cudnn, allow_tf32_cudnn);
TORCH_LAZY_EXPOSE(Tf32Onednn, allow_tf32_onednn);
TORCH_LAZY_EXPOSE(LinalgBackend, linalg_preferred_backend);
TORCH_LAZY_EXPOSE(BlasBackend, blas_preferred_backend);
TORCH_LAZY_EXPOSE(Fp16Reduction, allow_fp16_reduction_cublas);
TORCH_LAZY_EXPOSE(Bf16Reduction, allow_bf16_reduction_cublas);
TORCH_LAZY_EXPOSE(SmCarveout, sm_carveout);
TORCH_LAZY_EXPOSE(SdpPriority, sdp_priority_order);

#undef TORCH_LAZY_EXPOSE

using Backend = at::Float32Backend;
using Op = at::Float32Op;

// Every key that the map has from its construction; none is ever added or erased.
const std::array<std::pair<Backend, Op>, GlobalState::kFloat32Settings> kFloat32Keys = {{
    {Backend::GENERIC, Op::ALL},
    {Backend::MKLDNN, Op::ALL},
    {Backend::MKLDNN, Op::CONV},
    {Backend::MKLDNN, Op::RNN},
    {Backend::MKLDNN, Op::MATMUL},
    {Backend::CUDA, Op::ALL},
    {Backend::CUDA, Op::CONV},
    {Backend::CUDA, Op::RNN},
    {Backend::CUDA, Op::MATMUL},
}};

// Where the settings live. The context is a singleton and map nodes do not move, so the addresses
// hold.
struct Settings {
  at::Context& context;
  const unsigned char* first;  // of the members from enabled_cudnn up to the map
  size_t bytes;
  std::array<at::Float32Precision*, GlobalState::kFloat32Settings> float32{};

  Settings() : context(at::globalContext()) {
    first = reinterpret_cast<const unsigned char*>(&(context.*member(FirstSetting{})));
    auto& map = context.*member(Float32Map{});
    bytes = static_cast<size_t>(reinterpret_cast<const unsigned char*>(&map) - first);
    for (size_t i = 0; i < kFloat32Keys.size(); ++i) float32[i] = &map.at(kFloat32Keys[i]);
  }
};

const Settings& settings() {
  static const Settings instance;
  return instance;
}

constexpr unsigned kFlushBits = 0x8040;  // MXCSR: flush to zero, denormals are zero

unsigned flush_bits() {
#if defined(__x86_64__) || defined(_M_X64)
  return _mm_getcsr() & kFlushBits;
#else
  return 0;
#endif
}

void set_flush_denormal(bool on) {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_setcsr((_mm_getcsr() & ~kFlushBits) | (on ? kFlushBits : 0));
#else
  at::globalContext().setFlushDenormal(on);
#endif
}

// What a word is made from, as found in memory.
struct Snapshot {
  static constexpr size_t kContextBytes = 512;

  int threads = 0;
  unsigned flush = 0;
  at::ScalarType dtype = at::ScalarType::Undefined;
  bool inference = false;
  std::array<at::Float32Precision, GlobalState::kFloat32Settings> float32{};
  std::array<unsigned char, kContextBytes> context{};
};

GlobalState make_word(const Snapshot& seen) {
  at::Context& context = settings().context;
  GlobalState word;
  word.threads = seen.threads;
  word.flush_denormal = seen.flush == kFlushBits;
  word.default_dtype = static_cast<uint8_t>(seen.dtype);
  word.inference_mode = seen.inference;
  for (size_t i = 0; i < word.float32_precision.size(); ++i) {
    word.float32_precision[i] = static_cast<uint8_t>(seen.float32[i]);
  }
  word.cudnn_benchmark_limit = context.benchmarkLimitCuDNN();
  word.sm_carveout = (context.*member(SmCarveout{})).value_or(-1);
  word.matmul_precision = static_cast<uint8_t>(context.*member(MatmulPrecision{}));
  word.linalg_backend = static_cast<uint8_t>(context.*member(LinalgBackend{}));
  word.blas_backend = static_cast<uint8_t>(context.*member(BlasBackend{}));
  word.fp16_reduction_cublas = static_cast<uint8_t>(context.*member(Fp16Reduction{}));
  word.bf16_reduction_cublas = static_cast<uint8_t>(context.*member(Bf16Reduction{}));
  word.quantized_engine = static_cast<uint8_t>(context.qEngine());
  const auto& order = context.*member(SdpPriority{});
  static_assert(std::tuple_size_v<std::decay_t<decltype(order)>> <= GlobalState::kSdpBackends);
  for (size_t i = 0; i < order.size(); ++i) {
    word.sdp_priority[i] = static_cast<uint8_t>(static_cast<int>(order[i]) + 1);
  }
  word.deterministic_algorithms = context.deterministicAlgorithms();
  word.deterministic_warn_only = context.deterministicAlgorithmsWarnOnly();
  word.deterministic_fill_uninitialized = context.deterministicFillUninitializedMemory();
  word.cudnn_enabled = context.userEnabledCuDNN();
  word.cudnn_benchmark = context.benchmarkCuDNN();
  word.cudnn_deterministic = context.deterministicCuDNN();
  word.mkldnn_enabled = context.userEnabledMkldnn();
  word.mkldnn_deterministic = context.deterministicMkldnn();
  word.nnpack_enabled = context.userEnabledNNPACK();
  word.tf32_cudnn = context.*member(Tf32Cudnn{});
  word.tf32_onednn = context.*member(Tf32Onednn{});
  word.fp16_accumulation_cublas = context.allowFP16AccumulationCuBLAS();
  word.fp16_reduction_cpu = context.allowFP16ReductionCPU();
  word.sdp_flash = context.userEnabledFlashSDP();
  word.sdp_memory_efficient = context.userEnabledMemEfficientSDP();
  word.sdp_math = context.userEnabledMathSDP();
  word.sdp_cudnn = context.userEnabledCuDNNSDP();
  word.sdp_overrideable = context.userEnabledOverrideableSDP();
  word.sdp_math_reduced_precision = context.allowFP16BF16ReductionMathSDP();
  // Settings that not every supported PyTorch has.
  [&](const auto& any) {
    if constexpr (requires { any.userEnabledFA3SDP(); }) word.sdp_flash3 = any.userEnabledFA3SDP();
    if constexpr (requires { any.cudnnDepthwiseKernel(); }) {
      word.cudnn_depthwise = static_cast<uint8_t>(any.cudnnDepthwiseKernel());
    }
  }(context);
  return word;
}

struct ThreadState {
  Snapshot seen;
  GlobalState word;
  uint32_t version = 0;  // 0 until the first look
};

// Read for every operation. The initial-exec model saves a call of __tls_get_addr; glibc keeps room
// for such variables in libraries loaded late, as long as they are as small as a pointer.
#if defined(__GLIBC__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit thread_local ThreadState* thread_state = nullptr;

[[gnu::noinline]] ThreadState& new_thread_state() {
  static thread_local ThreadState state;  // trivially destructible: usable until the thread is gone
  thread_state = &state;
  return state;
}

ThreadState& this_thread() {
  return thread_state != nullptr ? *thread_state : new_thread_state();
}

// True where this thread's snapshot still holds; otherwise takes a new one.
bool look(ThreadState& state) {
  const Settings& now = settings();
  Snapshot& seen = state.seen;
  bool same = state.version != 0;
  const int threads = at::get_num_threads();
  const unsigned flush = flush_bits();
  const at::ScalarType dtype = c10::get_default_dtype_as_scalartype();
  const bool inference = c10::AutogradState::get_tls_state().get_inference_mode();
  same &= seen.threads == threads && seen.flush == flush && seen.dtype == dtype &&
          seen.inference == inference;
  for (size_t i = 0; i < now.float32.size(); ++i) same &= seen.float32[i] == *now.float32[i];
  same = same && std::memcmp(seen.context.data(), now.first, now.bytes) == 0;
  if (same) [[likely]]
    return true;
  seen.threads = threads;
  seen.flush = flush;
  seen.dtype = dtype;
  seen.inference = inference;
  for (size_t i = 0; i < now.float32.size(); ++i) seen.float32[i] = *now.float32[i];
  TORCH_CHECK(now.bytes <= Snapshot::kContextBytes, "torch_lazy: at::Context has ", now.bytes,
              " bytes of settings, expected at most ", Snapshot::kContextBytes,
              "; build torch_lazy for this version of PyTorch");
  std::memcpy(seen.context.data(), now.first, now.bytes);
  return false;
}

[[gnu::noinline]] void renew(ThreadState& state) {
  const GlobalState word = make_word(state.seen);
  // Making the word may itself settle a setting on its first use (the quantized engine).
  std::memcpy(state.seen.context.data(), settings().first, settings().bytes);
  if (state.version == 0 || !(word == state.word)) {
    state.word = word;
    if (++state.version == 0) state.version = 1;
  }
}

// Writes what differs between the two words; `from` is the state in force.
void apply(const GlobalState& from, const GlobalState& to) {
  at::Context& context = settings().context;
  auto set = [&](auto field, auto&& setter) {
    if (from.*field != to.*field) setter(to.*field);
  };
  auto write = [&](auto field, auto& target) {
    using Target = std::remove_reference_t<decltype(target)>;
    if (from.*field != to.*field) target = static_cast<Target>(to.*field);
  };
  set(&GlobalState::threads, [](int n) { at::set_num_threads(n); });
  set(&GlobalState::flush_denormal, set_flush_denormal);
  set(&GlobalState::default_dtype, [](uint8_t dtype) {
    c10::set_default_dtype(caffe2::TypeMeta::fromScalarType(static_cast<at::ScalarType>(dtype)));
  });
  set(&GlobalState::cudnn_benchmark_limit, [&](int n) { context.setBenchmarkLimitCuDNN(n); });
  // Written directly: their setters warn, throw, or change other settings with them.
  write(&GlobalState::matmul_precision, context.*member(MatmulPrecision{}));
  write(&GlobalState::linalg_backend, context.*member(LinalgBackend{}));
  write(&GlobalState::blas_backend, context.*member(BlasBackend{}));
  write(&GlobalState::fp16_reduction_cublas, context.*member(Fp16Reduction{}));
  write(&GlobalState::bf16_reduction_cublas, context.*member(Bf16Reduction{}));
  write(&GlobalState::tf32_cudnn, context.*member(Tf32Cudnn{}));
  write(&GlobalState::tf32_onednn, context.*member(Tf32Onednn{}));
  for (size_t i = 0; i < to.float32_precision.size(); ++i) {
    if (from.float32_precision[i] != to.float32_precision[i]) {
      *settings().float32[i] = static_cast<at::Float32Precision>(to.float32_precision[i]);
    }
  }
  if (from.sdp_priority != to.sdp_priority) {
    auto& order = context.*member(SdpPriority{});
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<at::SDPBackend>(static_cast<int>(to.sdp_priority[i]) - 1);
    }
  }
  set(&GlobalState::sm_carveout, [&](int32_t n) {
    context.*member(SmCarveout{}) = n < 0 ? std::nullopt : std::optional<int32_t>(n);
  });
  set(&GlobalState::quantized_engine,
      [&](uint8_t engine) { context.setQEngine(static_cast<at::QEngine>(engine)); });
  if (from.deterministic_algorithms != to.deterministic_algorithms ||
      from.deterministic_warn_only != to.deterministic_warn_only) {
    context.setDeterministicAlgorithms(to.deterministic_algorithms, to.deterministic_warn_only);
  }
  set(&GlobalState::deterministic_fill_uninitialized,
      [&](bool on) { context.setDeterministicFillUninitializedMemory(on); });
  set(&GlobalState::cudnn_enabled, [&](bool on) { context.setUserEnabledCuDNN(on); });
  set(&GlobalState::cudnn_benchmark, [&](bool on) { context.setBenchmarkCuDNN(on); });
  set(&GlobalState::cudnn_deterministic, [&](bool on) { context.setDeterministicCuDNN(on); });
  set(&GlobalState::mkldnn_enabled, [&](bool on) { context.setUserEnabledMkldnn(on); });
  set(&GlobalState::mkldnn_deterministic, [&](bool on) { context.setDeterministicMkldnn(on); });
  set(&GlobalState::nnpack_enabled, [&](bool on) { context.setUserEnabledNNPACK(on); });
  set(&GlobalState::fp16_accumulation_cublas,
      [&](bool on) { context.setAllowFP16AccumulationCuBLAS(on); });
  set(&GlobalState::fp16_reduction_cpu, [&](bool on) { context.setAllowFP16ReductionCPU(on); });
  set(&GlobalState::sdp_flash, [&](bool on) { context.setSDPUseFlash(on); });
  set(&GlobalState::sdp_memory_efficient, [&](bool on) { context.setSDPUseMemEfficient(on); });
  set(&GlobalState::sdp_math, [&](bool on) { context.setSDPUseMath(on); });
  set(&GlobalState::sdp_cudnn, [&](bool on) { context.setSDPUseCuDNN(on); });
  set(&GlobalState::sdp_overrideable, [&](bool on) { context.setSDPUseOverrideable(on); });
  set(&GlobalState::sdp_math_reduced_precision,
      [&](bool on) { context.setAllowFP16BF16ReductionMathSDP(on); });
  [&](auto& any) {
    if constexpr (requires { any.setSDPUseFA3(true); }) {
      set(&GlobalState::sdp_flash3, [&](bool on) { any.setSDPUseFA3(on); });
    }
    if constexpr (requires { any.cudnnDepthwiseKernel(); }) {
      set(&GlobalState::cudnn_depthwise, [&](uint8_t kernel) {
        any.setCuDNNDepthwiseKernel(static_cast<decltype(any.cudnnDepthwiseKernel())>(kernel));
      });
    }
  }(context);
}

static_assert(std::has_unique_object_representations_v<GlobalState>,
              "equality and hash must see the same bytes");
static_assert(sizeof(GlobalState) % sizeof(uint64_t) == 0);

}  // namespace

const GlobalState& GlobalState::current() {
  ThreadState& state = this_thread();
  if (!look(state)) renew(state);
  return state.word;
}

uint32_t GlobalState::current_version() {
  ThreadState& state = this_thread();
  if (!look(state)) renew(state);
  return state.version;
}

uint64_t GlobalState::hash() const {
  uint64_t hash = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(this);
  for (size_t i = 0; i < sizeof(GlobalState); i += sizeof(uint64_t)) {
    uint64_t chunk;
    std::memcpy(&chunk, bytes + i, sizeof(chunk));
    hash = (hash ^ chunk) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash;
}

std::string GlobalState::to_string() const {
  std::string out = at::toString(static_cast<at::ScalarType>(default_dtype));
  auto flag = [&](const char* name, bool on) {
    if (on) out += std::string(" ") + name;
  };
  auto number = [&](const char* name, int64_t value, int64_t usual) {
    if (value != usual) out += std::string(" ") + name + "=" + std::to_string(value);
  };
  flag("deterministic_algorithms", deterministic_algorithms);
  flag("deterministic_warn_only", deterministic_warn_only);
  flag("deterministic_fill_uninitialized", deterministic_fill_uninitialized);
  flag("cudnn_enabled", cudnn_enabled);
  flag("cudnn_benchmark", cudnn_benchmark);
  flag("cudnn_deterministic", cudnn_deterministic);
  flag("mkldnn_enabled", mkldnn_enabled);
  flag("mkldnn_deterministic", mkldnn_deterministic);
  flag("nnpack_enabled", nnpack_enabled);
  flag("tf32_cudnn", tf32_cudnn);
  flag("tf32_onednn", tf32_onednn);
  flag("fp16_accumulation_cublas", fp16_accumulation_cublas);
  flag("fp16_reduction_cpu", fp16_reduction_cpu);
  flag("sdp_flash", sdp_flash);
  flag("sdp_flash3", sdp_flash3);
  flag("sdp_memory_efficient", sdp_memory_efficient);
  flag("sdp_math", sdp_math);
  flag("sdp_cudnn", sdp_cudnn);
  flag("sdp_overrideable", sdp_overrideable);
  flag("sdp_math_reduced_precision", sdp_math_reduced_precision);
  flag("flush_denormal", flush_denormal);
  flag("inference_mode", inference_mode);
  number("threads", threads, -1);
  number("matmul_precision", matmul_precision, 0);
  number("cudnn_benchmark_limit", cudnn_benchmark_limit, 10);
  number("sm_carveout", sm_carveout, -1);
  number("linalg_backend", linalg_backend, 0);
  number("blas_backend", blas_backend, 0);
  number("fp16_reduction_cublas", fp16_reduction_cublas, 0);
  number("bf16_reduction_cublas", bf16_reduction_cublas, 0);
  number("quantized_engine", quantized_engine, 0);
  number("cudnn_depthwise", cudnn_depthwise, 0);
  out += " float32_precision=";
  for (uint8_t value : float32_precision) out += std::to_string(value);
  out += " sdp_priority=";
  for (uint8_t value : sdp_priority) {
    if (value != 0) out += std::to_string(value - 1);
  }
  return out;
}

ScopedGlobalState::ScopedGlobalState(const GlobalState& wanted) : saved_(GlobalState::current()) {
  GlobalState reachable = wanted;
  reachable.inference_mode = saved_.inference_mode;
  if (!(reachable == saved_)) apply(saved_, reachable);
}

ScopedGlobalState::~ScopedGlobalState() {
  const GlobalState now = GlobalState::current();
  GlobalState back = saved_;
  back.inference_mode = now.inference_mode;
  if (!(back == now)) apply(now, back);
}

}  // namespace torch_lazy
