// The cheapest way to a backend: a table from operator to a function that makes the device's own
// command for one call of it. The core walks the graph, does views, memory, the life of values and
// errors; what the table has not, or refuses, is run by ATen.
//
// Calls are of core operators (docs/core-operators.md) and of those that are left whole, in
// functional form: results are memory of their own, no argument is written. The exceptions are
// copies, offered as aten::copy_ of equal sizes, whose result is its first argument: memory that a
// program keeps, or part of a larger tensor. Not offered are calls with lists of optional tensors
// (aten::index.Tensor) and those whose results are on the CPU.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace torch_lazy {

struct TensorDescription {
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> sizes, strides;  // in elements; arguments may be views, expanded ones too
};

struct OperatorArgument {
  // A tensor, or those of a list; none where the argument is none.
  std::vector<TensorDescription> tensors;
  // Anything else: a number (in a tensor's place too: a 0-dim tensor of its dtype), a list of
  // integers, a dtype, None.
  c10::IValue constant;
};

struct OperatorCall {
  std::string name;  // "aten::add.Tensor"
  const c10::FunctionSchema* schema = nullptr;
  std::vector<OperatorArgument> arguments;  // as the schema lists them
  std::vector<TensorDescription> results;
};

// Puts the operation on the current stream of the device and returns: it may run later, after all
// that was put there before. `addresses`: of the first elements of the arguments' tensors,
// flattened and in order, then of the results; that of a tensor without elements may be null. Where
// the device does not take the work it raises RefusedWork (backend/late_failure.h), and the
// window's operations are run instead; a later failure the device raises where the host waits for
// it, and whatever operation that is, the user gets it.
using DeviceCommand = std::function<void(c10::ArrayRef<void*> addresses)>;

// Called once a graph, on the background thread. An empty command: not this call (a dtype, strides,
// a number that the device does not do).
using MakeCommand = std::function<DeviceCommand(const OperatorCall& call)>;

// By the name of the operator with its overload, as in OperatorCall.
using OperatorTable = std::unordered_map<std::string, MakeCommand>;

}  // namespace torch_lazy
