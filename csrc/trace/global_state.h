// Everything besides its arguments that changes what an operation computes.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace torch_lazy {

// Plain data without padding, so that equality and hash see the same bytes. Grad mode and autocast
// are not here: both act above the recorder, and what they do is recorded as operations.
struct GlobalState {
  static constexpr size_t kFloat32Settings = 9;
  static constexpr size_t kSdpBackends = 8;

  int32_t threads = 0;                // intra-op threads of the calling thread
  int32_t cudnn_benchmark_limit = 0;  // algorithms tried
  int32_t sm_carveout = -1;           // multiprocessors kept free by matmul; -1 for none
  uint8_t default_dtype = 0;          // at::ScalarType
  uint8_t matmul_precision = 0;       // at::Float32MatmulPrecision: highest, high, medium
  uint8_t linalg_backend = 0;         // at::LinalgBackend
  uint8_t blas_backend = 0;           // at::BlasBackend
  uint8_t fp16_reduction_cublas = 0;  // at::CuBLASReductionOption
  uint8_t bf16_reduction_cublas = 0;  // at::CuBLASReductionOption
  uint8_t quantized_engine = 0;       // at::QEngine
  uint8_t cudnn_depthwise = 0;        // at::CuDNNDepthwiseKernel
  // at::Float32Precision as set, not as inherited, in the order of kFloat32Keys (global_state.cpp).
  std::array<uint8_t, kFloat32Settings> float32_precision{};
  std::array<uint8_t, kSdpBackends> sdp_priority{};  // at::SDPBackend + 1, 0 where unused

  bool deterministic_algorithms = false;
  bool deterministic_warn_only = false;
  bool deterministic_fill_uninitialized = false;
  bool cudnn_enabled = false;
  bool cudnn_benchmark = false;
  bool cudnn_deterministic = false;
  bool mkldnn_enabled = false;
  bool mkldnn_deterministic = false;
  bool nnpack_enabled = false;
  bool tf32_cudnn = false;
  bool tf32_onednn = false;
  bool fp16_accumulation_cublas = false;
  bool fp16_reduction_cpu = false;
  bool sdp_flash = false;
  bool sdp_flash3 = false;
  bool sdp_memory_efficient = false;
  bool sdp_math = false;
  bool sdp_cudnn = false;
  bool sdp_overrideable = false;
  bool sdp_math_reduced_precision = false;
  bool flush_denormal =
      false;  // of the calling thread; always false where the CPU has no such mode
  bool inference_mode = false;       // of the calling thread
  std::array<uint8_t, 5> padding{};  // explicit, always zero

  // The calling thread's state now. Cheap enough for every operation: what the word was
  // made from is compared with what it is now, and only a difference makes a new word.
  // The reference is to thread-local storage, valid until the next call on this thread.
  static const GlobalState& current();
  static GlobalState capture() { return current(); }

  // Changes whenever a call finds another word than the call before it on this thread. Comparing it
  // is the quickest way to see that nothing changed since. Never 0.
  static uint32_t current_version();

  // Whether this word is still the calling thread's state.
  bool unchanged() const { return *this == current(); }

  bool operator==(const GlobalState&) const = default;
  uint64_t hash() const;

  // What differs from PyTorch's defaults is what a reader wants first: flags that are set, by name,
  // then the numbers. One line.
  std::string to_string() const;
};

// Puts a global state in force for a scope: writes only what differs, then and when the scope ends.
// Thread count and flush-denormal are the calling thread's; the rest is global to the process, as
// it is in PyTorch. Inference mode is not applied: it is the caller's to enter.
class ScopedGlobalState {
 public:
  explicit ScopedGlobalState(const GlobalState& wanted);
  ~ScopedGlobalState();
  ScopedGlobalState(const ScopedGlobalState&) = delete;
  ScopedGlobalState& operator=(const ScopedGlobalState&) = delete;

 private:
  GlobalState saved_;
};

}  // namespace torch_lazy
