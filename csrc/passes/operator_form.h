// How an operator is written without changing its arguments.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_lazy {

struct OperatorForm {
  enum class Kind : uint8_t {
    kPure,      // returns memory of its own; stays as it is
    kView,      // returns views of arguments, moves nothing (t_ and resize_ also)
    kCopy,      // its second argument's elements, cast and expanded, become its first's
    kFill,      // its second argument (0 where it has none) becomes every element of its first
    kMutation,  // computes as `functional` does, then replaces the contents of arguments
    kUnknown,   // returns a view or memory of its own, depending on its arguments
  };
  Kind kind = Kind::kPure;
  c10::OperatorHandle handle;
  // Of a mutation: the operator that returns the new contents instead.
  std::optional<c10::OperatorHandle> functional;
  // Of a mutation: for each argument of `functional` the argument of `handle`; none for what says
  // how a new tensor is to be (its dtype, device, ...), which is like the written one then.
  std::vector<std::optional<size_t>> arguments;
  bool makes_like_written = false;  // some are none
  // Arguments of `handle` that are written. The contents of the i-th are what `functional` returns
  // after what `handle` returns as new tensors.
  std::vector<size_t> written;
};

// Forms by operator. Not thread safe.
class OperatorForms {
 public:
  // The form of a node's operator with the node's arguments (whether statistics are trained is one
  // of them). Raises where there is none, naming the operator and the line that recorded it. The
  // reference is valid as long as this object.
  const OperatorForm& of(const torch::jit::Node& node);

 private:
  std::unordered_map<std::string, OperatorForm> forms_;
};

// Raises what a pass raises that cannot go on because of a node: names its operator and line.
[[noreturn]] void unsupported(const torch::jit::Node& node, const std::string& reason);

}  // namespace torch_lazy
