// One call of an operator on device `lazy`, from arguments to results. Boxed and unboxed kernels
// both go through it:
//
//   inspect() every argument, then dispatch_mode()
//     kTraced:   begin() gives the open operation, which takes the words of every argument;
//                where it matches, deferred_outputs() are the results, else as untraced
//     kUntraced: run on the inner tensors, then complete() with what makes results of theirs
//     kMeta:     the Meta kernel answers
//
// A call that is destroyed before it had results has raised.
#pragma once

#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "backend/execution_device.h"
#include "device/encode_argument.h"
#include "device/inspected_arguments.h"
#include "device/new_operators.h"

namespace torch_lazy {

class Call {
 public:
  explicit Call(const OperatorInfo& op)
      : op_(op), recorder_(Recorder::current()), arguments_(recorder_, op) {
    __builtin_prefetch(&op);
    look_at_new_operators();
  }
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const OperatorInfo& op() const { return op_; }

  template <class Argument>
  void inspect(const Argument& argument) {
    arguments_.add(argument);
  }
  DispatchMode dispatch_mode() { return arguments_.dispatch_mode(); }
  bool all_lazy() const { return arguments_.all_lazy(); }

  OpenOperation& begin() { return operation_.emplace(recorder_, op_, arguments_.device_index()); }

  // All arguments are encoded. True: the operation is deferred.
  bool match() {
    if (op_.writes) arguments_.settle_writes(*operation_);
    if (op_.offsets != OffsetNeed::kNone) arguments_.fix_offsets(*operation_);
    return operation_->match();
  }

  // The results of an operation that is deferred. An output that is an argument is left undefined
  // unless asked for: a second reference to a tensor that Python holds takes the GIL.
  std::span<at::Tensor> deferred_outputs(bool arguments_too = true);

  // Where an operator that runs at the call leaves what it warns of, so that it warns again where
  // it is deferred.
  std::vector<c10::Warning>& warnings() { return warnings_; }

  // The results of an operation that ran: returns make_results(), which calls one wrap(),
  // argument() or record_argument() for each flattened tensor return, in order.
  template <class MakeResults>
  auto complete(const MakeResults& make_results) {
    if (op_.may_rebind) take_over_arguments();
    if (operation_) begin_outputs();
    if constexpr (std::is_void_v<decltype(make_results())>) {
      make_results();
      finish();
    } else {
      auto results = make_results();
      finish();
      return results;
    }
  }
  at::Tensor wrap(at::Tensor&& inner);
  // The return is the argument itself: the first form makes no reference to it.
  void record_argument(size_t schema_argument);
  at::Tensor argument(size_t schema_argument);

 private:
  void take_over_arguments();
  void begin_outputs() {
    operation_->begin_outputs();
    if (!warnings_.empty()) [[unlikely]]
      operation_->warned(remember_warnings(warnings_));
  }
  void finish() {
    finished_ = true;
    if (operation_) operation_->end();
  }
  void count_fill(const at::Tensor& made) const;
  void record_argument_output(size_t source);
  // `view_of`: of a new view, its source.
  void record_output(OutputMetadata::Kind kind, size_t source, LazyTensorImpl& impl,
                     const LazyTensorImpl* view_of = nullptr);
  at::Tensor tensor_argument(size_t index) const;
  // Where the tensors begin that the next output may be a view of.
  size_t viewed_argument() const;
  // What an output is over that is no argument: a storage of its own, or that of an argument or of
  // an output before it.
  struct ViewedTensor {
    OutputMetadata::Kind kind = OutputMetadata::Kind::kFresh;
    size_t source = 0;
    const LazyTensorImpl* base = nullptr;
  };
  ViewedTensor viewed_by(const at::Tensor& inner) const;

  const OperatorInfo& op_;
  Recorder& recorder_;
  InspectedArguments arguments_;
  bool finished_ = false;  // there are results
  std::vector<c10::Warning> warnings_;
  c10::SmallVector<bool, 8> changed_;             // arguments whose metadata the operation changed
  c10::SmallVector<at::Tensor, 3> outputs_;       // of a deferred operation
  c10::SmallVector<LazyTensorImpl*, 3> wrapped_;  // of one that ran, null where undefined
  std::optional<OpenOperation> operation_;        // of a traced one; the first to be destroyed
};

// Kernels are called below everything the dispatcher did for the lazy tensor.
inline c10::DispatchKeySet inner_keys() {
  return c10::DispatchKeySet(execution_device().key);
}

}  // namespace torch_lazy
