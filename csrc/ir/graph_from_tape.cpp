#include "ir/graph_from_tape.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <map>
#include <string>
#include <unordered_map>

#include "ir/argument_constant.h"
#include "ir/node_operator.h"
#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::SourceRange;
using torch::jit::Value;
using Kind = OutputMetadata::Kind;

constexpr uint8_t kViewFlags = kConj | kNeg;

template <typename Metadata>
c10::TensorTypePtr tensor_type(const Metadata& metadata, c10::Device device) {
  return c10::TensorType::create(
      metadata.dtype, device, c10::VaryingShape<int64_t>(c10::IntArrayRef(metadata.sizes).vec()),
      c10::VaryingShape<int64_t>(c10::IntArrayRef(metadata.strides).vec()), std::nullopt);
}

bool is_tensor(const c10::TypePtr& type) {
  return strip_optional(type)->kind() == c10::TypeKind::TensorType;
}

bool is_tensor_list(const c10::TypePtr& type) {
  const auto list = strip_optional(type)->cast<c10::ListType>();
  return list && is_tensor(list->getElementType());
}

// "add" of aten::add_: what values are named after, with the operation's index.
std::string short_name(const Node* node) {
  std::string name = node->kind().toUnqualString();
  const size_t first = name.find_first_not_of('_');
  const size_t last = name.find_last_not_of('_');
  return first == std::string::npos ? "value" : name.substr(first, last - first + 1);
}

class Builder {
 public:
  Builder(const Tape& tape, const DynamicScalars& dynamic_scalars, c10::Device device)
      : tape_(tape), device_(device), graph_(std::make_shared<torch::jit::Graph>()) {
    slots_.resize(tape.values);
    storages_.resize(tape.storages);
    add_numbers(dynamic_scalars);
  }

  WindowGraph build(const std::vector<bool>& live_storages) {
    for (size_t i = 0; i < tape_.size(); ++i) add_operation(i);
    for (uint32_t storage = 0; storage < storages_.size(); ++storage) {
      const Storage& known = storages_[storage];
      if (!known.root || storage >= live_storages.size() || !live_storages[storage]) continue;
      graph_->registerOutput(slot(*known.root).value);
      window_.output_storages.push_back(storage);
    }
    window_.inputs = inputs_.place(tape_.storages);
    window_.graph = std::move(graph_);
    return std::move(window_);
  }

 private:
  struct Slot {
    Value* value = nullptr;  // the newest that stands for the slot
    uint8_t flags = 0;       // conj and neg bits that `value` has
  };
  struct Storage {
    bool input = false;
    std::optional<uint32_t> root;  // value slot
  };
  // A dynamic scalar and the forms of it that operations take.
  struct Number {
    Value* input;
    Value* scalar = nullptr;
    std::map<c10::ScalarType, Value*> tensors;
  };
  struct Argument {
    uint32_t slot;
    bool passed_as_is;  // and not as an alias made for this operation
  };

  template <typename T>
  static T& at_slot(std::vector<T>& all, uint32_t slot) {
    if (slot >= all.size()) all.resize(slot + 1);
    return all[slot];
  }
  Slot& slot(uint32_t index) { return at_slot(slots_, index); }

  // ---- Nodes ----

  Node* insert(Node* node) {
    if (range_) node->setSourceRange(*range_);
    graph_->insertNode(node);
    window_.operations.push_back(operation_);
    return node;
  }

  Node* insert(const char* kind, c10::ArrayRef<Value*> inputs, size_t outputs = 1) {
    return insert(graph_->create(c10::Symbol::fromQualString(kind), inputs, outputs));
  }

  // Not given a source range: a constant belongs to no line, and prints better without.
  Value* constant(const c10::IValue& value) {
    const auto inserted = torch::jit::tryInsertConstant(*graph_, value);
    TORCH_CHECK(inserted.has_value(), "operator '", name(), "' has a constant argument of type ",
                value.type()->str(), ", which a graph cannot hold");
    window_.operations.push_back(operation_);
    return *inserted;
  }

  Value* view_of(Value* value, const char* kind, const char* suffix) {
    Node* node = insert(kind, {value});
    node->output()->setType(value->type());
    node->output()->setDebugName(value->debugName() + suffix + std::to_string(operation_));
    return node->output();
  }

  // ---- Arguments ----

  void add_numbers(const DynamicScalars& dynamic_scalars) {
    for (const DynamicScalar& dynamic : dynamic_scalars) {
      if (dynamic.first != dynamic.word) {
        number_at_[dynamic.word] = number_at_.at(dynamic.first);
        continue;
      }
      const size_t index = numbers_.size();
      Value* value = graph_->addInput("number" + std::to_string(index));
      value->setType(scalar_type(c10::kDouble));
      numbers_.push_back({value});
      number_at_[dynamic.word] = index;
      window_.numbers.push_back(dynamic.word);
    }
  }

  static c10::TensorTypePtr scalar_type(c10::ScalarType dtype) {
    return tensor_type(InputMetadata{.dtype = dtype}, c10::kCPU);
  }

  // Before the numbers, which were there first.
  void add_inputs(const std::vector<InputMetadata>& inputs) {
    for (const InputMetadata& input : inputs) {
      const size_t index = input_count_++;
      Value* value = graph_->insertInput(index, "in" + std::to_string(index));
      value->setType(tensor_type(input, input.cpu ? c10::Device(c10::kCPU) : device_));
      slot(input.value) = {value, 0};
      if (!input.cpu) at_slot(storages_, input.storage).input = true;
      inputs_.add(input);
    }
  }

  Value* tensor(const Operand& operand) {
    TORCH_CHECK(!(operand.flags & kWrappedNumber), "operator '", name(),
                "' takes a computed tensor as a wrapped number, which a graph cannot express");
    const Slot& known = slot(operand.value);
    TORCH_INTERNAL_ASSERT(known.value, "'", name(), "' reads a value that nothing made");
    Value* value = known.value;
    const uint32_t index = uint32_t(arguments_.size());
    // An operation that changes metadata in place must not change what other uses of the value see.
    if (rebound(index)) value = view_of(value, "aten::alias", "_alias_");
    const uint8_t differing = (operand.flags ^ known.flags) & kViewFlags;
    if (differing & kConj) value = view_of(value, "aten::_conj", "_conj_");
    if (differing & kNeg) value = view_of(value, "aten::_neg_view", "_neg_");
    arguments_.push_back({operand.value, value == known.value});
    return value;
  }

  bool rebound(uint32_t argument) const {
    for (const OutputMetadata& output : outputs_)
      if (output.kind == Kind::kArgumentRebound && output.source == argument) return true;
    return false;
  }

  Value* undefined_tensor() {
    // Its type is a plain Tensor: one marked undefined matches no declared argument.
    return insert(graph_->createAutogradZero())->output()->setType(c10::TensorType::get());
  }

  Number* dynamic_number(const Operand& operand) {
    if (operand.number_word == 0 || numbers_.empty()) return nullptr;
    const auto found = number_at_.find(uint32_t(words_begin_ + operand.number_word));
    return found == number_at_.end() ? nullptr : &numbers_[found->second];
  }

  Value* dynamic_argument(Number& number, const c10::TypePtr& formal) {
    if (!is_tensor(formal)) {
      if (!number.scalar) {
        number.scalar = insert("aten::ScalarImplicit", {number.input})->output();
        number.scalar->setType(c10::NumberType::get());
      }
      return number.scalar;
    }
    // A wrapped number gives way to the dtypes of tensors, and this must too.
    const c10::ScalarType dtype = result_dtype();
    Value*& tensor = number.tensors[dtype];
    if (!tensor) {
      Value* none = constant({});
      Value* type = constant(int64_t(dtype));
      Value* non_blocking = constant(false);
      Node* node =
          insert("aten::_to_copy", {number.input, type, none, none, none, non_blocking, none});
      tensor = node->output()->setType(scalar_type(dtype));
      tensor->setDebugName(number.input->debugName() + "_" + c10::toString(dtype));
    }
    return tensor;
  }

  // Of the one tensor that the operation returns.
  c10::ScalarType result_dtype() {
    TORCH_INTERNAL_ASSERT(outputs_.size() == 1, "'", name(), "' returns no single tensor");
    if (outputs_[0].kind != Kind::kArgument) return outputs_[0].dtype;
    TORCH_INTERNAL_ASSERT(outputs_[0].source < arguments_.size());
    const Value* same = slot(arguments_[outputs_[0].source].slot).value;
    return *same->type()->expectRef<c10::TensorType>().scalarType();
  }

  // A list of Scalars of which at least one is dynamic.
  Value* scalar_list(const Operand& operand) {
    std::vector<Value*> elements;
    for (const Operand& item : operand.elements)
      elements.push_back(argument(item, c10::NumberType::get()));
    return insert(graph_->createList(c10::NumberType::get(), elements))->output();
  }

  Value* argument(const Operand& operand, const c10::TypePtr& formal) {
    if (Number* number = dynamic_number(operand)) return dynamic_argument(*number, formal);
    switch (operand.kind) {
      case Operand::Kind::kValue:
        return tensor(operand);
      case Operand::Kind::kTensorList:
      case Operand::Kind::kOptionalTensorList: {
        const bool optional = operand.kind == Operand::Kind::kOptionalTensorList;
        c10::TypePtr element = c10::TensorType::get();
        if (optional) element = c10::OptionalType::ofTensor();
        std::vector<Value*> elements;
        for (const Operand& item : operand.elements) elements.push_back(argument(item, element));
        Node* list = insert(graph_->createList(element, elements));
        return list->output();
      }
      case Operand::Kind::kScalarList:
      case Operand::Kind::kConstant:
        break;
    }
    for (const Operand& item : operand.elements)
      if (dynamic_number(item)) return scalar_list(operand);
    if (operand.constant.isNone() && formal->kind() == c10::TypeKind::TensorType)
      return undefined_tensor();
    const c10::IValue value = argument_constant(operand.constant, formal, device_);
    // TorchScript's bool is no Scalar, ATen's is.
    if (value.isBool() && strip_optional(formal)->kind() == c10::TypeKind::NumberType) {
      Value* number = constant(at::scalar_tensor(value.toBool(), at::kBool));
      Value* scalar = insert("aten::ScalarImplicit", {number})->output();
      return scalar->setType(c10::NumberType::get());
    }
    return constant(value);
  }

  // ---- Operations ----

  const std::string& name() const { return tape_.entry(operation_).op->name; }

  void add_operation(size_t index) {
    operation_ = uint32_t(index);
    words_begin_ = tape_.words_begin(index);
    const Tape::Entry& entry = tape_.entry(index);
    const c10::FunctionSchema& schema = entry.op->handle.schema();
    range_ = range_of(entry.location);
    std::vector<InputMetadata> inputs;
    std::vector<StorageOffsets> offsets;
    const std::vector<Operand> operands = decode_operands(tape_.words(index), &inputs, &offsets);
    outputs_ = decode_outputs(tape_.outputs(index));
    TORCH_CHECK(operands.size() == schema.arguments().size(), "operator '", name(), "' takes ",
                schema.arguments().size(), " arguments, ", operands.size(), " were recorded");

    add_inputs(inputs);
    for (const StorageOffsets& known : offsets) inputs_.add(known);
    arguments_.clear();
    std::vector<Value*> values;
    for (size_t i = 0; i < operands.size(); ++i)
      values.push_back(argument(operands[i], schema.arguments()[i].type()));
    Node* node = insert(schema.name().c_str(), values, schema.returns().size());
    choose_overload(*node, schema);
    add_returns(node, schema);
  }

  void add_returns(Node* node, const c10::FunctionSchema& schema) {
    const std::string base = short_name(node) + "_" + std::to_string(operation_);
    size_t tensors = 0, lists = 0;
    for (const c10::Argument& value : schema.returns()) {
      tensors += is_tensor(value.type());
      lists += is_tensor_list(value.type());
    }
    const size_t in_lists = outputs_.size() - tensors;
    TORCH_CHECK(outputs_.size() >= tensors && (lists ? in_lists % lists : in_lists) == 0,
                "operator '", name(), "' returned ", outputs_.size(),
                " tensors, which its schema does not explain");
    size_t next = 0;
    for (size_t i = 0; i < schema.returns().size(); ++i) {
      const c10::Argument& declared = schema.returns()[i];
      Value* value = node->output(i);
      const auto add_next = [&](Value* tensor) {
        tensor->setDebugName(next == 0 ? base : base + "_" + std::to_string(next));
        add_return(tensor, outputs_[next++], declared);
      };
      if (is_tensor(declared.type())) {
        add_next(value);
      } else if (is_tensor_list(declared.type())) {
        value->setType(c10::ListType::ofTensors());
        value->setDebugName(base + "_list");
        Node* unpack = insert(graph_->createListUnpack(value, in_lists / lists));
        for (Value* element : unpack->outputs()) add_next(element);
      } else {
        value->setType(declared.type());
      }
    }
  }

  void add_return(Value* value, const OutputMetadata& output, const c10::Argument& declared) {
    if (output.kind == Kind::kUndefined) {
      value->setType(c10::TensorType::get()->withUndefined());
      return;
    }
    if (output.kind == Kind::kArgument) {
      TORCH_INTERNAL_ASSERT(output.source < arguments_.size());
      const Argument& argument = arguments_[output.source];
      Slot& same = slot(argument.slot);
      value->setType(same.value->type());
      // Later uses read what the schema says was written. Where it says nothing of an alias, they
      // keep to the argument, so that alias analysis is not misled.
      const c10::AliasInfo* alias = declared.alias_info();
      if (alias && alias->isWrite() && argument.passed_as_is) same.value = value;
      return;
    }
    value->setType(tensor_type(output, device_));
    slot(output.value) = {value, uint8_t(output.flags & kViewFlags)};
    Storage& storage = at_slot(storages_, output.storage);
    if (!storage.input && !storage.root) storage.root = output.value;
  }

  // TorchScript derives line and column from an offset into a text. Ours is one line of blanks, as
  // the file may be unreadable here.
  std::optional<SourceRange> range_of(LocationId id) {
    if (id == kNoLocation) return std::nullopt;
    const auto found = ranges_.find(id);
    if (found != ranges_.end()) return found->second;
    const SourceLocation where = location(id);
    const size_t column = where.column < 0 ? 0 : size_t(where.column);
    auto source = std::make_shared<torch::jit::Source>(std::string(column + 1, ' '), where.file,
                                                       size_t(where.line));
    return ranges_.emplace(id, SourceRange(std::move(source), column, column + 1)).first->second;
  }

  const Tape& tape_;
  const c10::Device device_;
  std::shared_ptr<torch::jit::Graph> graph_;
  WindowGraph window_;
  InputPlacer inputs_;
  size_t input_count_ = 0;
  std::vector<Slot> slots_;        // by value slot
  std::vector<Storage> storages_;  // by storage slot
  std::unordered_map<LocationId, SourceRange> ranges_;

  std::vector<Number> numbers_;
  std::unordered_map<uint32_t, size_t> number_at_;  // by word on the tape: index in numbers_

  // Of the operation being added.
  uint32_t operation_ = 0;
  size_t words_begin_ = 0;
  std::optional<SourceRange> range_;
  std::vector<OutputMetadata> outputs_;
  std::vector<Argument> arguments_;  // its tensor values, flattened
};

}  // namespace

WindowGraph graph_from_tape(const Tape& tape, const std::vector<bool>& live_storages,
                            const DynamicScalars& dynamic_scalars, c10::Device device) {
  return Builder(tape, dynamic_scalars, device).build(live_storages);
}

}  // namespace torch_lazy
