// One call of an operator on device `lazy`, from arguments to results. Boxed and unboxed kernels
// both go through it:
//
//   look at every argument -> way()
//     kRecord: begin(), encode every argument, match() -> deferred_output() per output, or
//              run on the inner tensors and wrap() per output
//     kAtOnce: run on the inner tensors and wrap(), beside the tape
//     kMeta:   a fake tensor is among the arguments; the Meta kernel answers
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "device/lazy_tensor.h"

namespace torch_lazy {

class Call {
 public:
  explicit Call(const OperatorInfo& op) : op_(op), recorder_(Recorder::current()) {
    __builtin_prefetch(&op);
  }
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // --- Looking
  void look(const at::Tensor& tensor);
  void look(const std::optional<at::Tensor>& tensor) {
    if (tensor) look(*tensor);
  }
  void look(at::ITensorListRef tensors) {
    for (const at::Tensor& tensor : tensors) look(tensor);
  }
  void look(at::TensorList tensors) {
    for (const at::Tensor& tensor : tensors) look(tensor);
  }
  void look(const c10::List<std::optional<at::Tensor>>& tensors);
  void look(const std::optional<at::Generator>& generator) {
    if (generator && generator->defined()) has_generator_ = true;
  }
  void look(const c10::IValue& value);
  void look(const at::Scalar& scalar) {
    // Beyond int64: the tape has no word for it.
    unrecordable_ |= scalar.type() == at::ScalarType::UInt64;
  }
  void look(const std::optional<at::Scalar>& scalar) {
    if (scalar) look(*scalar);
  }
  template <class Plain>
  void look(const Plain&) {}
  // Whether every tensor looked at is lazy: then there is no device to disagree with.
  bool all_lazy() const { return all_lazy_; }
  // Marks where the tensors of the next schema argument start among the flattened ones.
  void next_argument() { starts_.push_back(uint16_t(arguments_.size())); }

  enum class Way { kRecord, kAtOnce, kMeta };
  // Settles what must be settled before the operation, and for kAtOnce makes the sync it needs.
  Way way();

  // --- Recording
  void begin() {
    recorder_.begin(op_);
    open_ = true;
  }
  void encode(const at::Tensor& tensor);
  void encode(const std::optional<at::Tensor>& tensor);
  void encode(at::ITensorListRef tensors);
  void encode(at::TensorList tensors);
  void encode(const c10::List<std::optional<at::Tensor>>& tensors);
  void encode(const at::Scalar& scalar);
  void encode(at::ArrayRef<at::Scalar> scalars);
  void encode(int64_t value);
  void encode(double value);
  void encode(bool value) { word(make_word(Tag::kBool, value)); }
  void encode(const c10::SymInt& value) { encode(value.guard_int(__FILE__, __LINE__)); }
  void encode(c10::ScalarType dtype) { encode(int64_t(dtype)); }
  void encode(c10::Layout layout) { encode(int64_t(layout)); }
  void encode(c10::MemoryFormat format) { encode(int64_t(format)); }
  void encode(c10::Device device);
  void encode(const at::Generator&) { word(make_word(Tag::kGenerator)); }
  void encode(std::string_view text) { recorder_.tape().string(text); }
  void encode(c10::IntArrayRef list);
  void encode(c10::SymIntArrayRef list);
  void encode(c10::ArrayRef<double> list);
  template <size_t N>
  void encode(const std::array<bool, N>& list) {
    word(make_word(Tag::kBoolList, N));
    for (const bool value : list) word(value);
  }
  template <class Value>
  void encode(const std::optional<Value>& value) {
    if (value)
      encode(*value);
    else
      word(make_word(Tag::kNone));
  }
  void encode(const c10::OptionalArrayRef<int64_t>& list) {
    if (list)
      encode(*list);
    else
      word(make_word(Tag::kNone));
  }
  void encode(const c10::OptionalArrayRef<c10::SymInt>& list) {
    if (list)
      encode(*list);
    else
      word(make_word(Tag::kNone));
  }
  void encode(const c10::OptionalArrayRef<double>& list) {
    if (list)
      encode(*list);
    else
      word(make_word(Tag::kNone));
  }
  // By the type the schema gives the argument: a boxed value must leave the words of an unboxed
  // one.
  void encode(const c10::IValue& value, const c10::Type& type);

  // True: deferred. False: run now.
  bool match();

  // --- Outputs of a deferred operation, all at once.
  // An output that is an argument is left undefined unless asked for: a second reference to a
  // tensor that Python holds takes the GIL.
  std::span<at::Tensor> deferred_outputs(bool arguments_too = true);

  // --- Outputs of an operation that ran: start, one wrap() or argument() per flattened tensor
  // return, finish.
  void start_outputs();
  at::Tensor wrap(at::Tensor inner);
  // The return is the argument itself: the first form makes no reference to it.
  void record_argument(size_t schema_argument);
  at::Tensor argument(size_t schema_argument);
  void finish();

  // Where a return that is an argument stands in the schema.
  const OperatorInfo& op() const { return op_; }

 private:
  void word(uint64_t value) { recorder_.tape().word(value); }
  void count_fill(const at::Tensor& made) const;
  void record_argument_output(size_t source);
  void heal(LazyTensorImpl& impl);
  bool rebinds_twice() const;
  at::Tensor tensor_argument(size_t index) const;

  const OperatorInfo& op_;
  Recorder& recorder_;
  bool open_ = false;      // an entry is open on the tape
  bool deferred_ = false;  // and it matched
  bool all_lazy_ = true;
  bool has_generator_ = false;
  bool has_fake_ = false;
  bool has_mask_ = false;
  bool exported_ = false;
  bool touches_window_ = false;
  bool unrecordable_ = false;         // an argument has no words
  bool finished_ = false;             // the results were handed out
  LazyTensorImpl* healed_ = nullptr;  // poisoned again should the call raise
  std::shared_ptr<const std::exception_ptr> healed_error_;
  // Tensor arguments, flattened, counted as OutputMetadata::source counts them: no undefined ones
  // and no wrapped numbers; null where the tensor is not lazy.
  c10::SmallVector<LazyTensorImpl*, 8> arguments_;
  c10::SmallVector<uint16_t, 12> starts_;         // of each schema argument in `arguments_`
  c10::SmallVector<bool, 8> changed_;             // arguments whose metadata the operation changed
  c10::SmallVector<at::Tensor, 3> outputs_;       // of a deferred operation
  c10::SmallVector<LazyTensorImpl*, 3> wrapped_;  // of one that ran, null where undefined
};

// The CPU's dispatch key: kernels are called below everything the dispatcher did for the lazy
// tensor.
inline c10::DispatchKeySet inner_keys() {
  return c10::DispatchKeySet(c10::DispatchKey::CPU);
}

inline c10::Device inner_device(c10::Device device) {
  TORCH_CHECK(device.type() != c10::DeviceType::Lazy || device.index() <= 0, "there is no device ",
              device, ": device lazy has 1 device, lazy:0");
  return device.type() == c10::DeviceType::Lazy ? c10::Device(c10::kCPU) : device;
}

}  // namespace torch_lazy
