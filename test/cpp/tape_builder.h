// Writes tapes by hand, as the recorder would, by running every operation for real:
//
//   TapeBuilder window;
//   auto x = window.input(at::ones({2, 3}));
//   auto y = window.call("aten::add", "Tensor", {x, number(2), 1})[0];
//
// A handle is a value slot together with the tensor that ATen computed for it, so that a test can
// compare what a graph computes with what eager did. Inputs are snapshotted: TapeBuilder::inputs()
// are tensors as they were before the first operation, sharing storage as the originals do.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "ir/graph_from_tape.h"
#include "none.h"
#include "ops/operator_info.h"
#include "tape/input_offsets.h"
#include "tape/tape.h"

namespace torch_lazy {

// The graph of a tape whose tensors live on the CPU.
inline WindowGraph cpu_graph(const Tape& tape, const std::vector<bool>& live_storages,
                             const DynamicScalars& dynamic_scalars = {}) {
  return graph_from_tape(tape, live_storages, dynamic_scalars, c10::kCPU);
}

}  // namespace torch_lazy

namespace torch_lazy::tests {

struct Handle {
  at::Tensor tensor;  // undefined: an undefined tensor is passed or was returned
  uint8_t flags = 0;  // beside the metadata of the value
};

// A Python number in a tensor's place.
inline at::Tensor number(at::Scalar value) {
  at::Tensor tensor = at::scalar_tensor(value, at::TensorOptions(value.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

class TapeBuilder {
 public:
  using Handles = std::vector<Handle>;
  // Lists of handles stand for Tensor[] and Tensor?[] arguments.
  using Argument = std::variant<Handle, Handles, at::Tensor, c10::IValue>;

  // A tensor that exists before the window; on the tape from its first use.
  Handle input(const at::Tensor& tensor) {
    // One snapshot per storage, so that inputs that share memory still do.
    at::Storage& storage = snapshots_[tensor.storage().unsafeGetStorageImpl()];
    if (!storage) storage = whole(tensor).clone().storage();
    before_[tensor.unsafeGetTensorImpl()] =
        at::empty({0}, tensor.options())
            .set_(storage, tensor.storage_offset(), tensor.sizes(), tensor.strides());
    kept_.push_back(tensor);
    return {tensor};
  }

  // Runs the operator and tapes it. Returns a handle per flattened tensor return.
  Handles call(const char* name, const char* overload, const std::vector<Argument>& arguments,
               LocationId location = kNoLocation) {
    const OperatorInfo& info = operator_info(name, overload);
    tape.begin(&info, location);
    torch::jit::Stack stack;
    passed_.clear();
    for (size_t i = 0; i < arguments.size(); ++i)
      push(arguments[i], *info.handle.schema().arguments().at(i).type(), stack);
    fix_offsets(info, arguments);
    struct Before {
      std::vector<int64_t> sizes, strides;
      int64_t byte_offset;
    };
    std::vector<Before> before;
    for (const at::Tensor& tensor : passed_)
      before.push_back({tensor.sizes().vec(), tensor.strides().vec(), byte_offset(tensor)});
    info.handle.callBoxed(&stack);

    Handles returned;
    const auto take = [&](const at::Tensor& tensor) {
      returned.push_back({tensor});
      OutputMetadata output;
      if (!tensor.defined()) return tape.output(output);
      for (uint32_t i = 0; i < passed_.size(); ++i) {
        if (!tensor.is_same(passed_[i])) continue;
        const bool same = tensor.sizes() == c10::IntArrayRef(before[i].sizes) &&
                          tensor.strides() == c10::IntArrayRef(before[i].strides);
        output.kind =
            same ? OutputMetadata::Kind::kArgument : OutputMetadata::Kind::kArgumentRebound;
        output.source = i;
      }
      if (output.kind == OutputMetadata::Kind::kUndefined) {
        output.kind = OutputMetadata::Kind::kFresh;
        for (uint32_t i = 0; i < passed_.size(); ++i) {
          if (!tensor.is_alias_of(passed_[i])) continue;
          output.kind = OutputMetadata::Kind::kAliasArgument;
          output.source = i;
        }
      }
      if (output.kind != OutputMetadata::Kind::kArgument) describe(tensor, output);
      if (output.is_view()) {
        output.offset -= before[output.source].byte_offset;
        output.storage_bytes = 0;
      }
      tape.output(output);
    };
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) take(value.toTensor());
      if (value.isTensorList())
        for (const at::Tensor& tensor : value.toTensorVector()) take(tensor);
    }
    tape.end();
    return returned;
  }

  // The graph's inputs in order, as they were before the window. Fresh copies at every call.
  std::vector<at::Tensor> inputs() const {
    std::unordered_map<const void*, at::Storage> copies;
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& input : inputs_) {
      at::Storage& copy = copies[input.storage().unsafeGetStorageImpl()];
      if (!copy) copy = whole(input).clone().storage();
      tensors.push_back(at::empty({0}, input.options())
                            .set_(copy, input.storage_offset(), input.sizes(), input.strides()));
    }
    return tensors;
  }

  uint32_t value(const Handle& handle) const {
    return values_.at(handle.tensor.unsafeGetTensorImpl());
  }
  uint32_t storage(const Handle& handle) const {
    return storages_.at(handle.tensor.storage().unsafeGetStorageImpl());
  }
  std::vector<bool> live(const Handles& handles) const {
    std::vector<bool> live(tape.storages);
    for (const Handle& handle : handles) live[storage(handle)] = true;
    return live;
  }

  Tape tape;

 private:
  static at::Tensor whole(const at::Tensor& tensor) {
    const int64_t bytes = int64_t(tensor.storage().nbytes());
    return at::empty({0}, tensor.options())
        .set_(tensor.storage(), 0, {bytes / int64_t(tensor.itemsize())}, {1});
  }

  uint32_t storage_slot(const at::Tensor& tensor, bool* first = nullptr) {
    const auto [found, added] =
        storages_.emplace(tensor.storage().unsafeGetStorageImpl(), tape.storages);
    if (added) {
      ++tape.storages;
      offsets_.add_storage(/*made=*/first == nullptr);
    }
    if (first) *first = added;
    return found->second;
  }

  void describe(const at::Tensor& tensor, OutputMetadata& output) {
    output.flags = flags_of(tensor);
    output.dtype = tensor.scalar_type();
    output.value = tape.values++;
    output.storage = storage_slot(tensor);
    output.storage_bytes = int64_t(tensor.storage().nbytes());
    output.offset = byte_offset(tensor);
    output.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
    output.strides.assign(tensor.strides().begin(), tensor.strides().end());
    values_[tensor.unsafeGetTensorImpl()] = output.value;
    kept_.push_back(tensor);
  }

  static uint8_t flags_of(const at::Tensor& tensor) {
    return uint8_t(tensor.is_conj() ? kConj : 0) | uint8_t(tensor.is_neg() ? kNeg : 0);
  }

  void tensor_word(const Handle& handle) {
    const at::Tensor& tensor = handle.tensor;
    const uint8_t flags = flags_of(tensor) ^ handle.flags;
    passed_.push_back(tensor);
    const auto [found, added] = values_.emplace(tensor.unsafeGetTensorImpl(), tape.values);
    if (!added) return tape.word(make_word(Tag::kValue, found->second, 0, flags));
    tape.word(make_word(Tag::kInput, tape.values++, 0, flags));
    bool first = false;
    const uint32_t slot = storage_slot(tensor, &first);
    const InputOffset offset = offsets_.describe(slot, byte_offset(tensor));
    tape.tensor_metadata(
        *tensor.unsafeGetTensorImpl(), slot, first, offset,
        offset.kind == OffsetKind::kAbsolute ? int64_t(tensor.storage().nbytes()) : 0);
    inputs_.push_back(before_.at(tensor.unsafeGetTensorImpl()));
  }

  static int64_t byte_offset(const at::Tensor& tensor) {
    return tensor.storage_offset() * int64_t(tensor.itemsize());
  }

  // As InspectedArguments::fix_offsets().
  void fix_offsets(const OperatorInfo& info, const std::vector<Argument>& arguments) {
    const auto fix = [&](const Handle& handle) {
      if (!handle.tensor.defined()) return;
      const bool relative = info.offsets == OffsetNeed::kRelative;
      const auto known =
          offsets_.fix(storage(handle), relative ? OffsetKind::kRelative : OffsetKind::kAbsolute,
                       int64_t(handle.tensor.storage().nbytes()));
      if (known) tape.offsets(*known);
    };
    if (info.offsets == OffsetNeed::kNone) return;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (info.offsets != OffsetNeed::kOfAll && !info.effects->arguments[i].writes) continue;
      if (const auto* handle = std::get_if<Handle>(&arguments[i])) fix(*handle);
      if (const auto* handles = std::get_if<Handles>(&arguments[i]))
        for (const Handle& element : *handles) fix(element);
    }
  }

  void push(const Argument& argument, const c10::Type& type, torch::jit::Stack& stack) {
    if (const auto* handle = std::get_if<Handle>(&argument)) {
      if (handle->tensor.defined())
        tensor_word(*handle);
      else
        tape.word(make_word(Tag::kUndefined));
      at::Tensor passed = handle->tensor;
      if (handle->flags & kConj) passed = at::_conj(passed);
      if (handle->flags & kNeg) passed = at::_neg_view(passed);
      stack.emplace_back(passed);
    } else if (const auto* handles = std::get_if<Handles>(&argument)) {
      const bool optional = type.str().find('?') != std::string::npos;
      tape.word(make_word(optional ? Tag::kOptionalTensorList : Tag::kTensorList,
                          uint32_t(handles->size())));
      c10::List<at::Tensor> tensors;
      c10::List<std::optional<at::Tensor>> optionals;
      for (const Handle& element : *handles) {
        if (element.tensor.defined())
          tensor_word(element);
        else
          tape.word(make_word(Tag::kNone));
        tensors.push_back(element.tensor);
        optionals.push_back(element.tensor.defined() ? std::optional(element.tensor)
                                                     : std::nullopt);
      }
      if (optional)
        stack.emplace_back(optionals);
      else
        stack.emplace_back(tensors);
    } else if (const auto* wrapped = std::get_if<at::Tensor>(&argument)) {
      uint64_t bits[2] = {0, 0};
      std::memcpy(bits, wrapped->const_data_ptr(), wrapped->itemsize());
      tape.word(make_word(Tag::kNumber, 0, uint16_t(wrapped->scalar_type())));
      tape.word(bits[0]);
      tape.word(bits[1]);
      stack.emplace_back(*wrapped);
    } else {
      constant(std::get<c10::IValue>(argument));
      stack.push_back(std::get<c10::IValue>(argument));
    }
  }

  void real(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    tape.word(bits);
  }

  void constant(const c10::IValue& value) {
    if (value.isNone()) return tape.word(make_word(Tag::kNone));
    if (value.isBool()) return tape.word(make_word(Tag::kBool, value.toBool()));
    if (value.isString()) return tape.string(value.toStringRef());
    if (value.isInt()) {
      tape.word(make_word(Tag::kInt));
      return tape.word(uint64_t(value.toInt()));
    }
    if (value.isDouble()) {
      tape.word(make_word(Tag::kDouble));
      return real(value.toDouble());
    }
    if (value.isComplexDouble()) {
      tape.word(make_word(Tag::kComplex));
      real(value.toComplexDouble().real());
      return real(value.toComplexDouble().imag());
    }
    if (value.isDevice()) {
      const c10::Device device = value.toDevice();
      return tape.word(
          make_word(Tag::kDevice, uint32_t(device.type()) << 8 | uint32_t(device.index() + 1)));
    }
    if (value.isIntList()) {
      const auto list = value.toIntVector();
      tape.word(make_word(Tag::kIntList, uint32_t(list.size())));
      for (const int64_t item : list) tape.word(uint64_t(item));
      return;
    }
    if (value.isDoubleList()) {
      const auto list = value.toDoubleVector();
      tape.word(make_word(Tag::kDoubleList, uint32_t(list.size())));
      for (const double item : list) real(item);
      return;
    }
    if (value.isBoolList()) {
      const c10::List<bool> list = value.toBoolList();
      tape.word(make_word(Tag::kBoolList, uint32_t(list.size())));
      for (const bool item : list) tape.word(item);
      return;
    }
    TORCH_CHECK(value.isList(), "no word for a ", value.type()->str());
    const auto list = value.toListRef();
    tape.word(make_word(Tag::kList, uint32_t(list.size())));
    for (const c10::IValue& item : list) constant(item);
  }

  std::vector<at::Tensor> passed_;  // tensor arguments of the operation being taped, flattened
  std::vector<at::Tensor> inputs_;  // snapshots, by graph input
  InputOffsets offsets_;
  std::vector<at::Tensor> kept_;  // keeps addresses unique while they name slots
  std::unordered_map<const void*, uint32_t> values_, storages_;
  std::unordered_map<const void*, at::Tensor> before_;
  std::unordered_map<const void*, at::Storage> snapshots_;
};

}  // namespace torch_lazy::tests
