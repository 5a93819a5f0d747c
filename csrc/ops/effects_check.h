// Debug aid: runs along with an operator and tells where it did what ops/effects says it does not.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ops/effects.h"

namespace torch_lazy {

// Make it before the operator runs, call finish after. Hashes all bytes of every argument's storage
// twice: for debugging only. Looks at CPU tensors with storage; skips all others. Holds a reference
// to the arguments' tensors and storages while it lives.
class EffectsCheck {
 public:
  EffectsCheck(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments);

  // Empty if all is as declared; else one sentence for each contradiction, with operator and
  // argument named.
  std::string finish(c10::ArrayRef<c10::IValue> returns) const;

 private:
  struct Seen {
    size_t argument;  // position in the schema
    at::Tensor tensor;
    c10::Storage storage;  // as it was before: set_ and resize_ may give the tensor another
    uint64_t bytes;        // hash of the storage's content
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
    int64_t offset;
  };

  // Each appends a sentence to `out` for each contradiction.
  void check_arguments(const Effects& effects, std::string& out) const;
  // Returns whether a tensor of return `index` lies in the storage of an argument.
  bool check_source(size_t index, const ReturnEffect& effect, const at::Tensor& tensor,
                    std::string& out) const;
  template <typename... Parts>
  void complain(std::string& out, const Parts&... parts) const;
  const std::string& name(size_t argument) const;

  c10::OperatorHandle op_;
  std::vector<Seen> seen_;
};

}  // namespace torch_lazy
