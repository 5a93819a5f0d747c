// What the arguments of a call say about how it is dispatched. Inspecting a tensor also resolves
// what must have happened before the operation, see Recorder::resolve().
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>

#include "device/lazy_tensor.h"
#include "ops/indices_within.h"
#include "ops/operator_info.h"
#include "trace/open_operation.h"

namespace torch_lazy {

enum class DispatchMode : uint8_t {
  kTraced,    // recorded; deferred, or run at the call
  kUntraced,  // run at the call, and the tape does not know of it
  kMeta,      // a fake tensor is among the arguments: the Meta kernel answers
};

class InspectedArguments {
 public:
  InspectedArguments(Recorder& recorder, const OperatorInfo& op) : recorder_(recorder), op_(op) {}

  // One argument of the schema, in order.
  template <class Argument>
  void add(const Argument& argument) {
    starts_.push_back(uint32_t(tensors_.size()));
    inspect(argument);
  }

  // For kUntraced makes the sync that the operation needs.
  DispatchMode dispatch_mode();
  // Whether what it makes is no lazy tensor: the call names another device.
  bool makes_elsewhere() const { return has(kElsewhere); }
  // Whether every tensor is lazy: then there is no device to disagree with.
  bool all_lazy() const { return !has(kOtherTensor); }

  // Tensors, flattened, counted as OutputMetadata::source counts them: no undefined ones and no
  // wrapped numbers; null where the tensor is not lazy.
  const c10::SmallVector<LazyTensorImpl*, 8>& tensors() const { return tensors_; }
  // Of the first lazy tensor, else of the device that is named, else of the current one.
  c10::DeviceIndex device_index() const {
    return device_index_ >= 0 ? device_index_ : execution_device().current();
  }
  // Where those of a schema argument start.
  size_t start(size_t schema_argument) const { return starts_[schema_argument]; }

  // The arguments are on the tape: the window comes to own what the operation writes.
  void settle_writes(OpenOperation& operation) const;
  // The arguments are on the tape: says there where inputs lie that the operation writes, or whose
  // offsets it looks at.
  void fix_offsets(OpenOperation& operation) const;
  // The operation is deferred: what it writes is stale until the window has run.
  void note_pending_writes() const;
  // The operation raised: what it should have overwritten is poisoned as before.
  void poison_again();

 private:
  // 2 to the 64th over the golden ratio: multiplication by it spreads bits over the upper half.
  static constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;

  static constexpr int64_t kNone = INT64_MIN;  // in the hash: x[:n] is not x[n:]

  enum Fact : uint16_t {
    kOtherTensor = 1,    // a tensor that is not lazy
    kFakeTensor = 2,     // one that has the key of a lazy tensor
    kMask = 4,           // an index of booleans: sizes depend on data
    kGenerator = 8,      // draws random numbers
    kExported = 16,      // memory that is shared with other libraries
    kInWindow = 32,      // a storage that the open window knows
    kWithoutWords = 64,  // a value that the tape has no words for
    kOtherIndex = 128,   // a tensor of another lazy:N, or the result is to be there
    kElsewhere = 256,    // the result is to be on a device that is not lazy
  };
  bool has(Fact fact) const { return facts_ & fact; }
  bool has_any(int facts) const { return facts_ & facts; }
  void note(Fact fact, bool holds) { facts_ |= holds ? fact : 0; }

  // A lazy:N that takes part.
  void see(c10::DeviceIndex index) {
    if (device_index_ < 0) device_index_ = index;
    note(kOtherIndex, index != device_index_);
  }

  void inspect(const at::Tensor& tensor);
  void inspect_other(const at::Tensor& tensor);  // one that is not lazy
  void inspect(const std::optional<at::Tensor>& tensor) {
    if (tensor) inspect(*tensor);
  }
  void inspect(at::ITensorListRef tensors) {
    for (const at::Tensor& tensor : tensors) inspect(tensor);
  }
  void inspect(at::TensorList tensors) {
    for (const at::Tensor& tensor : tensors) inspect(tensor);
  }
  void inspect(const c10::List<std::optional<at::Tensor>>& tensors);
  void inspect(const std::optional<at::Generator>& generator) {
    note(kGenerator, generator && generator->defined());
  }
  void inspect(const at::Scalar& scalar) {
    note(kWithoutWords, scalar.type() == at::ScalarType::UInt64);  // beyond int64
  }
  void inspect(const std::optional<at::Scalar>& scalar) {
    if (scalar) inspect(*scalar);
  }
  void inspect(const std::optional<c10::Device>& device);
  void inspect(const c10::IValue& value);
  void inspect(int64_t number) {
    if (!first_integer_) first_integer_ = number;
    last_integer_ = number;
    add_to_hash(number);
  }
  void inspect(const std::optional<c10::SymInt>& number) {
    if (number)
      inspect(*number);
    else
      add_to_hash(kNone);
  }
  void add_to_hash(int64_t number) { integers_ = (integers_ ^ uint64_t(number)) * kGoldenRatio; }
  void inspect(const c10::SymInt& number) {
    if (const auto known = number.maybe_as_int()) inspect(*known);
  }
  template <class Plain>
  void inspect(const Plain&) {}

  // Whether an index that is known now is out of range: its operator has to raise at the call.
  bool index_out_of_range() const;
  bool known_outside(size_t tensor, const IndexRange& range) const;
  // The indices of a dimension of the first argument; nothing where it has no such dimension.
  std::optional<IndexRange> range_of(int64_t dim, bool or_from_end) const;

  void heal(LazyTensorImpl& impl);
  size_t elements() const;      // of all lazy tensors
  bool rebinds_twice() const;   // of an operator that may
  bool is_moving_view() const;  // of one that picks a part, see ViewHistory
  template <class Visit>
  void for_each_written(const Visit& visit) const;

  Recorder& recorder_;
  const OperatorInfo& op_;
  uint16_t facts_ = 0;                  // of Fact
  c10::DeviceIndex device_index_ = -1;  // not known yet
  std::optional<int64_t> first_integer_;
  std::optional<int64_t> last_integer_;
  uint64_t integers_ = 0;                // a hash of all
  c10::SmallVector<uint8_t, 4> places_;  // of the tensors of a list in which some may be missing
  // Of an operator that takes indices: its CPU tensors, by their place in tensors_.
  c10::SmallVector<std::pair<size_t, at::Tensor>, 1> on_the_host_;
  LazyTensorImpl* healed_ = nullptr;
  std::shared_ptr<const std::exception_ptr> healed_error_;
  c10::SmallVector<LazyTensorImpl*, 8> tensors_;
  c10::SmallVector<uint32_t, 12> starts_;
};

}  // namespace torch_lazy
