#include "runtime/verify.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/clone.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <string>
#include <unordered_map>

#include "ops/thread_state.h"
#include "plan/step.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

// Backends may reorder sums; anything beyond that is a wrong kernel. Relative to the element, then
// to the largest: a sum that cancels is off by a share of its terms.
constexpr double kRelative = 1e-4, kOfLargest = 1e-5;
// Of bfloat16 and half instead, of which one is told from the next by 1/128 and 1/1,024.
constexpr double kRelativeOfShort = 2e-2, kOfLargestOfShort = 1e-2;

double largest(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || !tensor.is_floating_point()) return 1;
  return std::max(1.0, tensor.abs().nan_to_num(0, 0, 0).max().item().toDouble());
}

bool is_close(const at::Tensor& got, const at::Tensor& expected) {
  const bool is_short = c10::isReducedFloatingType(expected.scalar_type());
  return at::allclose(got, expected, is_short ? kRelativeOfShort : kRelative,
                      (is_short ? kOfLargestOfShort : kOfLargest) * largest(expected), true);
}

// Of the element that is furthest off, for whoever has to judge whether it is rounding.
std::string worst_element(const at::Tensor& got, const at::Tensor& expected) {
  const at::ScalarType wide = expected.is_complex() ? at::kComplexDouble : at::kDouble;
  const at::Tensor a = got.to(wide).flatten(), b = expected.to(wide).flatten();
  const at::Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  const at::Tensor off = a.sub(b).abs().nan_to_num(1e300, 1e300).masked_fill(same, 0);
  const int64_t worst = off.argmax().item().toLong();
  std::ostringstream text;
  text << ": element " << worst << " of " << a.numel() << " is " << a[worst].item() << " and not "
       << b[worst].item() << ", and the largest is " << b.abs().max().item();
  return text.str();
}

// Copies that share storage where the originals do.
class AliasedCopies {
 public:
  at::Tensor copy(const at::Tensor& tensor) {
    const c10::StorageImpl* key = tensor.storage().unsafeGetStorageImpl();
    auto found = copies_.find(key);
    if (found == copies_.end()) {
      const at::Tensor memory =
          over(tensor.storage(), tensor, c10::scalarTypeToTypeMeta(c10::kByte));
      const int64_t bytes = int64_t(tensor.storage().nbytes());
      memory.unsafeGetTensorImpl()->set_sizes_contiguous({bytes});
      found = copies_.emplace(key, memory.clone().storage()).first;
    }
    at::Tensor copied = over(found->second, tensor, tensor.dtype());
    copied.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(),
                                                        tensor.storage_offset());
    if (tensor.is_conj()) copied.unsafeGetTensorImpl()->_set_conj(true);
    if (tensor.is_neg()) copied.unsafeGetTensorImpl()->_set_neg(true);
    return copied;
  }

 private:
  // A tensor of the same device over a storage.
  static at::Tensor over(const c10::Storage& storage, const at::Tensor& like,
                         caffe2::TypeMeta dtype) {
    return at::detail::make_tensor<c10::TensorImpl>(c10::Storage(storage), like.key_set() - kBits,
                                                    dtype);
  }

  static constexpr c10::DispatchKeySet kBits{
      {c10::DispatchKey::Conjugate, c10::DispatchKey::Negative}};
  std::unordered_map<const c10::StorageImpl*, c10::Storage> copies_;
};

// What is wrong; empty where nothing is.
std::string difference(const at::Tensor& got, const at::Tensor& expected) {
  if (got.sizes() != expected.sizes() || got.strides() != expected.strides() ||
      got.dtype() != expected.dtype())
    return " has other sizes, strides or another dtype";
  return is_close(got, expected) ? "" : worst_element(got, expected);
}

std::exception_ptr error_of(const std::string& what, const std::string& difference) {
  try {
    TORCH_CHECK(false, "TORCH_LAZY_VERIFY: ", what,
                " differs between the executable and the operations run one by one", difference);
  } catch (...) {
    return std::current_exception();
  }
}

struct Maker {
  uint32_t value;
  size_t operation;  // of the tape
};

// By storage that the window makes.
std::unordered_map<uint32_t, Maker> makers_of(const Tape& tape) {
  std::unordered_map<uint32_t, Maker> makers;
  for (size_t i = 0; i < tape.size(); ++i)
    for (const OutputMetadata& output : decode_outputs(tape.outputs(i)))
      if (output.kind == OutputMetadata::Kind::kFresh) makers[output.storage] = {output.value, i};
  return makers;
}

RunFailure failure_of(const std::exception_ptr& error, const CompiledTrace::Version& version,
                      size_t operation) {
  const auto& recorded = version.graph.operations;
  const auto found = std::find(recorded.begin(), recorded.end(), operation);
  return {found == recorded.end() ? 0 : size_t(found - recorded.begin()), error};
}

}  // namespace

RunResult run_and_verify(const CompiledTrace::Version& version, const Tape& tape,
                         c10::ArrayRef<at::Tensor> inputs, c10::Device device) {
  const StepThreadState state;
  std::vector<Step> steps;
  std::vector<InputMetadata> described;
  for (size_t i = 0; i < tape.size(); ++i)
    steps.push_back(step_from_tape(tape, i, &described, device));
  AliasedCopies copies;
  Values values(tape.values);
  std::vector<at::Tensor> copied_inputs;
  for (const at::Tensor& input : inputs) copied_inputs.push_back(copies.copy(input));
  for (size_t i = 0; i < described.size(); ++i) values[described[i].value] = copied_inputs[i];

  RunResult result = version.run(inputs);
  const UnprofiledRun compared;
  const auto failure = run_steps(steps, values, device);
  TORCH_CHECK(failure.has_value() == result.failure.has_value(),
              "TORCH_LAZY_VERIFY: the window fails only when it is ",
              failure ? "run one by one" : "run by its executable");
  if (failure) return result;
  const auto makers = makers_of(tape);
  const auto fail = [&](const std::exception_ptr& error, size_t operation) {
    result.outputs.assign(result.outputs.size(), {});
    result.failure = failure_of(error, version, operation);
    return result;
  };
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const Maker& maker = makers.at(version.graph.output_storages[i]);
    const std::string found = difference(result.outputs[i], values[maker.value]);
    if (!found.empty())
      return fail(error_of("output " + std::to_string(i), found), maker.operation);
  }
  for (size_t i = 0; i < copied_inputs.size(); ++i) {
    const std::string found = difference(inputs[i], copied_inputs[i]);
    if (!found.empty()) return fail(error_of("input " + std::to_string(i), found), 0);
  }
  return result;
}

}  // namespace torch_lazy
