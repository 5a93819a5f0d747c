#include "runtime/verify.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/clone.h>

#include <algorithm>
#include <unordered_map>

#include "ops/thread_state.h"
#include "plan/step.h"
#include "profile/running_window.h"

namespace torch_lazy {
namespace {

// Backends may reorder sums; anything beyond that is a wrong kernel. Relative to the element, then
// to the largest: a sum that cancels is off by a share of its terms.
constexpr double kRelative = 1e-4, kOfLargest = 1e-5;

double largest(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || !tensor.is_floating_point()) return 1;
  return std::max(1.0, tensor.abs().nan_to_num(0, 0, 0).max().item().toDouble());
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

void check_equal(const at::Tensor& got, const at::Tensor& expected, const std::string& what) {
  const bool same_metadata = got.sizes() == expected.sizes() &&
                             got.strides() == expected.strides() && got.dtype() == expected.dtype();
  TORCH_CHECK(
      same_metadata && at::allclose(got, expected, kRelative, kOfLargest * largest(expected), true),
      "TORCH_LAZY_VERIFY: ", what,
      " differs between the executable and the operations run one by one");
}

std::unordered_map<uint32_t, uint32_t> root_values(const Tape& tape) {
  std::unordered_map<uint32_t, uint32_t> roots;
  for (size_t i = 0; i < tape.size(); ++i)
    for (const OutputMetadata& output : decode_outputs(tape.outputs(i)))
      if (output.kind == OutputMetadata::Kind::kFresh) roots[output.storage] = output.value;
  return roots;
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
  const auto roots = root_values(tape);
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const uint32_t storage = version.graph.output_storages[i];
    check_equal(result.outputs[i], values[roots.at(storage)], "output " + std::to_string(i));
  }
  for (size_t i = 0; i < copied_inputs.size(); ++i)
    check_equal(inputs[i], copied_inputs[i], "input " + std::to_string(i));
  return result;
}

}  // namespace torch_lazy
