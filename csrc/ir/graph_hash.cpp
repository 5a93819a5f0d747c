#include "ir/graph_hash.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <fmt/format.h>
#include <torch/csrc/jit/ir/ir.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace torch_lazy {
namespace {

using torch::jit::AttributeKind;
using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

// Part of every hash, so that a changed form is never taken for an old one.
constexpr uint64_t kFormVersion = 1;

// Every item is preceded by its length or has a fixed one, so that no two graphs write the same.
class Writer {
 public:
  std::string write(const Graph& graph) {
    number(kFormVersion);
    block(*graph.block());
    return std::move(out_);
  }

 private:
  void number(uint64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void real(double value) { number(std::bit_cast<uint64_t>(value)); }
  void text(std::string_view value) {
    number(value.size());
    out_.append(value);
  }
  template <typename List, typename Write>
  void list(const List& items, Write write) {
    number(items.size());
    for (const auto& item : items) write(item);
  }
  void integers(c10::IntArrayRef values) {
    list(values, [&](int64_t value) { number(uint64_t(value)); });
  }
  void complex(c10::complex<double> value) {
    real(value.real());
    real(value.imag());
  }

  void block(const Block& block) {
    list(block.inputs(), [&](const Value* value) { define(value); });
    uint64_t nodes = 0;
    for (const Node* node : block.nodes()) nodes += node != nullptr;
    number(nodes);
    for (const Node* node : block.nodes()) write_node(*node);
    list(block.outputs(), [&](const Value* value) { use(value); });
  }

  void write_node(const Node& node) {
    text(node.kind().toQualString());
    list(node.inputs(), [&](const Value* value) { use(value); });
    std::vector<c10::Symbol> names = node.attributeNames();
    std::sort(names.begin(), names.end(), [](c10::Symbol a, c10::Symbol b) {
      return std::strcmp(a.toQualString(), b.toQualString()) < 0;
    });
    list(names, [&](c10::Symbol name) { attribute(node, name); });
    list(node.blocks(), [&](const Block* inner) { block(*inner); });
    list(node.outputs(), [&](const Value* value) { define(value); });
  }

  void define(const Value* value) {
    numbers_.emplace(value, numbers_.size());
    type(*value->type());
  }
  void use(const Value* value) { number(numbers_.at(value)); }

  template <typename T>
  void optional(const std::optional<T>& value) {
    number(value ? uint64_t(*value) + 1 : 0);
  }
  void dims(const c10::VaryingShape<int64_t>& shape) {
    optional(shape.size());
    for (size_t i = 0; shape.size() && i < *shape.size(); ++i) {
      number(shape[i].has_value());
      number(uint64_t(shape[i].value_or(0)));
    }
  }
  void type(const c10::Type& type) {
    number(uint64_t(type.kind()));
    if (type.kind() != c10::TypeKind::TensorType) return text(type.annotation_str());
    const auto& tensor = type.expectRef<c10::TensorType>();
    optional(tensor.scalarType());
    const auto device = tensor.device();
    number(device.has_value());
    if (device) text(device->str());
    dims(tensor.sizes());
    dims(tensor.strides());
    optional(tensor.undefined());
  }

  void attribute(const Node& node, c10::Symbol name) {
    text(name.toQualString());
    const AttributeKind kind = node.kindOf(name);
    number(uint64_t(kind));
    switch (kind) {
      case AttributeKind::f:
        return real(node.f(name));
      case AttributeKind::i:
        return number(uint64_t(node.i(name)));
      case AttributeKind::s:
        return text(node.s(name));
      case AttributeKind::c:
        return complex(node.c(name));
      case AttributeKind::t:
        return tensor(node.t(name));
      case AttributeKind::ival:
        return constant(node.ival(name));
      case AttributeKind::is:
        return integers(node.is(name));
      case AttributeKind::fs:
        return list(node.fs(name), [&](double value) { real(value); });
      case AttributeKind::ss:
        return list(node.ss(name), [&](const std::string& value) { text(value); });
      case AttributeKind::ts:
        return list(node.ts(name), [&](const at::Tensor& value) { tensor(value); });
      case AttributeKind::cs:
      case AttributeKind::ty:
      case AttributeKind::tys:
      case AttributeKind::g:
      case AttributeKind::gs:
        break;
    }
    TORCH_CHECK(false, "the attribute '", name.toUnqualString(), "' of a ",
                node.kind().toQualString(), " node cannot be compared");
  }

  void tensor(const at::Tensor& value) {
    number(value.defined());
    if (!value.defined()) return;
    TORCH_CHECK(value.is_cpu(), "a graph constant must be a CPU tensor");
    number(uint64_t(value.scalar_type()));
    number(value.unsafeGetTensorImpl()->is_wrapped_number());
    integers(value.sizes());
    integers(value.strides());
    const at::Tensor plain = value.resolve_conj().resolve_neg().contiguous();
    text({static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()});
  }

  void constant(const c10::IValue& value) {
    text(value.type()->annotation_str());
    if (value.isNone()) return;
    if (value.isBool()) return number(value.toBool());
    if (value.isInt()) return number(uint64_t(value.toInt()));
    if (value.isDouble()) return real(value.toDouble());
    if (value.isComplexDouble()) return complex(value.toComplexDouble());
    if (value.isString()) return text(value.toStringRef());
    if (value.isDevice()) return text(value.toDevice().str());
    if (value.isTensor()) return tensor(value.toTensor());
    TORCH_CHECK(value.isList(), "a constant of type ", value.type()->str(), " cannot be compared");
    if (value.isIntList()) return integers(value.toIntVector());
    if (value.isDoubleList()) return list(value.toDoubleVector(), [&](double item) { real(item); });
    const auto items = value.toListRef();
    list(items, [&](const c10::IValue& item) { constant(item); });
  }

  std::string out_;
  std::unordered_map<const Value*, uint64_t> numbers_;
};

}  // namespace

std::string canonical_form(const Graph& graph) {
  return Writer().write(graph);
}

std::string GraphHash::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

GraphHash hash_graph(const Graph& graph) {
  const std::string form = canonical_form(graph);
  const XXH128_hash_t hash = XXH3_128bits(form.data(), form.size());
  return {hash.low64, hash.high64};
}

bool same_graph(const Graph& a, const Graph& b) {
  return canonical_form(a) == canonical_form(b);
}

}  // namespace torch_lazy
