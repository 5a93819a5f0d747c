// Each setting is read and written by PyTorch's public functions, but where these warn, throw or
// change other settings with it (allowTF32CuBLAS, float32MatmulPrecision, ... where a program mixes
// the old and the new precision settings). Those are private members, reached through explicit
// instantiation, the one place where C++ lifts access control.

#include "trace/global_settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

#undef TORCH_LAZY_EXPOSE

using Backend = at::Float32Backend;
using Op = at::Float32Op;

// The precision of one kind of operation, as it is set and not as it is inherited.
struct Float32Setting {
  const char* name;
  Backend backend;
  Op op;
};

// Every key that PyTorch's map has from its construction; none is ever added or erased.
constexpr std::array<Float32Setting, WatchedMemory::kFloat32Precisions> kFloat32Settings = {{
    {"float32", Backend::GENERIC, Op::ALL},
    {"float32_onednn", Backend::MKLDNN, Op::ALL},
    {"float32_onednn_conv", Backend::MKLDNN, Op::CONV},
    {"float32_onednn_rnn", Backend::MKLDNN, Op::RNN},
    {"float32_onednn_matmul", Backend::MKLDNN, Op::MATMUL},
    {"float32_cuda", Backend::CUDA, Op::ALL},
    {"float32_cuda_conv", Backend::CUDA, Op::CONV},
    {"float32_cuda_rnn", Backend::CUDA, Op::RNN},
    {"float32_cuda_matmul", Backend::CUDA, Op::MATMUL},
}};

void set_flush_denormal(bool on) {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_setcsr((_mm_getcsr() & ~kFlushDenormalBits) | (on ? kFlushDenormalBits : 0));
#else
  at::globalContext().setFlushDenormal(on);
#endif
}

// ---------------------------------------------------------------- the table

using Table = std::vector<GlobalSetting>;

template <auto Getter, auto Setter>
GlobalSetting from_functions(const char* name) {
  using Value = decltype((std::declval<at::Context&>().*Getter)());
  return {
      name, [](at::Context& context) { return int32_t((context.*Getter)()); },
      [](at::Context& context, int32_t value) { (context.*Setter)(static_cast<Value>(value)); }};
}

template <class Tag>
GlobalSetting from_member(const char* name) {
  return {name, [](at::Context& context) { return int32_t(context.*member(Tag{})); },
          [](at::Context& context, int32_t value) {
            auto& target = context.*member(Tag{});
            target = static_cast<std::decay_t<decltype(target)>>(value);
          }};
}

void add_settings_of_thread(Table& table) {
  table.push_back({"threads", [](at::Context&) { return at::get_num_threads(); },
                   [](at::Context&, int32_t count) { at::set_num_threads(count); }});
  table.push_back(
      {"flush_denormal",
       [](at::Context&) { return int32_t(flush_denormal_bits() == kFlushDenormalBits); },
       [](at::Context&, int32_t on) { set_flush_denormal(on != 0); }});
  table.push_back({"inference_mode",
                   [](at::Context&) {
                     return int32_t(c10::AutogradState::get_tls_state().get_inference_mode());
                   },
                   [](at::Context&, int32_t) {}});
  table.push_back({"default_dtype",
                   [](at::Context&) { return int32_t(c10::get_default_dtype_as_scalartype()); },
                   [](at::Context&, int32_t dtype) {
                     c10::set_default_dtype(
                         caffe2::TypeMeta::fromScalarType(c10::ScalarType(dtype)));
                   }});
}

void add_deterministic_settings(Table& table) {
  using at::Context;
  table.push_back({"deterministic_algorithms",
                   [](Context& context) { return int32_t(context.deterministicAlgorithms()); },
                   [](Context& context, int32_t on) {
                     context.setDeterministicAlgorithms(on != 0,
                                                        context.deterministicAlgorithmsWarnOnly());
                   }});
  table.push_back(
      {"deterministic_warn_only",
       [](Context& context) { return int32_t(context.deterministicAlgorithmsWarnOnly()); },
       [](Context& context, int32_t on) {
         context.setDeterministicAlgorithms(context.deterministicAlgorithms(), on != 0);
       }});
  table.push_back(from_functions<&Context::deterministicFillUninitializedMemory,
                                 &Context::setDeterministicFillUninitializedMemory>(
      "deterministic_fill_uninitialized"));
}

void add_library_settings(Table& table) {
  using at::Context;
  for (GlobalSetting& setting : std::array{
           from_functions<&Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN>("cudnn"),
           from_functions<&Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN>("cudnn_benchmark"),
           from_functions<&Context::benchmarkLimitCuDNN, &Context::setBenchmarkLimitCuDNN>(
               "cudnn_benchmark_limit"),
           from_functions<&Context::deterministicCuDNN, &Context::setDeterministicCuDNN>(
               "cudnn_deterministic"),
           from_functions<&Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn>("onednn"),
           from_functions<&Context::deterministicMkldnn, &Context::setDeterministicMkldnn>(
               "onednn_deterministic"),
           from_functions<&Context::userEnabledNNPACK, &Context::setUserEnabledNNPACK>("nnpack"),
           from_functions<&Context::qEngine, &Context::setQEngine>("quantized_engine"),
           from_member<LinalgBackend>("linalg_backend"),
           from_member<BlasBackend>("blas_backend"),
       })
    table.push_back(std::move(setting));
}

void add_precision_settings(Table& table) {
  using at::Context;
  for (GlobalSetting& setting : std::array{
           from_member<MatmulPrecision>("matmul_precision"),
           from_member<Tf32Cudnn>("tf32_cudnn"),
           from_member<Tf32Onednn>("tf32_onednn"),
           from_member<Fp16Reduction>("fp16_reduction_cublas"),
           from_member<Bf16Reduction>("bf16_reduction_cublas"),
           from_functions<&Context::allowFP16AccumulationCuBLAS,
                          &Context::setAllowFP16AccumulationCuBLAS>("fp16_accumulation_cublas"),
           from_functions<&Context::allowFP16ReductionCPU, &Context::setAllowFP16ReductionCPU>(
               "fp16_reduction_cpu"),
       })
    table.push_back(std::move(setting));
  for (const Float32Setting& setting : kFloat32Settings) {
    const std::pair<Backend, Op> key(setting.backend, setting.op);
    table.push_back(
        {setting.name,
         [key](Context& context) { return int32_t((context.*member(Float32Map{})).at(key)); },
         [key](Context& context, int32_t value) {
           (context.*member(Float32Map{})).at(key) = at::Float32Precision(value);
         }});
  }
  // Multiprocessors that products leave to others; -1 for none.
  table.push_back(
      {"sm_carveout", [](Context& context) { return (context.*member(SmCarveout{})).value_or(-1); },
       [](Context& context, int32_t count) {
         context.*member(SmCarveout{}) = count < 0 ? std::nullopt : std::optional<int32_t>(count);
       }});
}

void add_attention_settings(Table& table) {
  using at::Context;
  for (GlobalSetting& setting : std::array{
           from_functions<&Context::userEnabledFlashSDP, &Context::setSDPUseFlash>("sdp_flash"),
           from_functions<&Context::userEnabledMemEfficientSDP, &Context::setSDPUseMemEfficient>(
               "sdp_memory_efficient"),
           from_functions<&Context::userEnabledMathSDP, &Context::setSDPUseMath>("sdp_math"),
           from_functions<&Context::userEnabledCuDNNSDP, &Context::setSDPUseCuDNN>("sdp_cudnn"),
           from_functions<&Context::userEnabledOverrideableSDP, &Context::setSDPUseOverrideable>(
               "sdp_overrideable"),
           from_functions<&Context::allowFP16BF16ReductionMathSDP,
                          &Context::setAllowFP16BF16ReductionMathSDP>("sdp_math_reduced_precision"),
       })
    table.push_back(std::move(setting));
  for (size_t i = 0; i < at::num_sdp_backends; ++i)
    table.push_back({"sdp_priority_" + std::to_string(i),
                     [i](Context& context) { return int32_t(context.sDPPriorityOrder().at(i)); },
                     [i](Context& context, int32_t backend) {
                       const auto now = context.sDPPriorityOrder();
                       std::vector<int64_t> order;
                       for (const at::SDPBackend each : now) order.push_back(int64_t(each));
                       order.at(i) = backend;
                       context.setSDPPriorityOrder(order);
                     }});
}

// Settings that not every supported PyTorch has.
template <class Context>
void add_newer_settings(Table& table, const Context&) {
  if constexpr (requires(Context & context) { context.userEnabledFA3SDP(); })
    table.push_back(
        from_functions<&Context::userEnabledFA3SDP, &Context::setSDPUseFA3>("sdp_flash3"));
  if constexpr (requires(Context & context) { context.cudnnDepthwiseKernel(); })
    table.push_back(
        from_functions<&Context::cudnnDepthwiseKernel, &Context::setCuDNNDepthwiseKernel>(
            "cudnn_depthwise"));
}

}  // namespace

const std::vector<GlobalSetting>& global_settings() {
  static const Table& instance = *new Table([] {
    Table made;
    add_settings_of_thread(made);
    add_deterministic_settings(made);
    add_library_settings(made);
    add_precision_settings(made);
    add_attention_settings(made);
    add_newer_settings(made, at::globalContext());
    return made;
  }());
  return instance;
}

const WatchedMemory& watched_memory() {
  static const WatchedMemory instance = [] {
    at::Context& context = at::globalContext();
    auto& map = context.*member(Float32Map{});
    WatchedMemory memory{};
    // The members from enabled_cudnn up to the map.
    memory.first = reinterpret_cast<const unsigned char*>(&(context.*member(FirstSetting{})));
    memory.bytes = size_t(reinterpret_cast<const unsigned char*>(&map) - memory.first);
    for (size_t i = 0; i < memory.float32.size(); ++i)
      memory.float32.at(i) = &map.at({kFloat32Settings.at(i).backend, kFloat32Settings.at(i).op});
    return memory;
  }();
  return instance;
}

}  // namespace torch_lazy
