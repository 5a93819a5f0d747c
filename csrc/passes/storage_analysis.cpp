#include "passes/storage_analysis.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/jit/ir/constants.h>

#include <optional>
#include <utility>

#include "ir/print.h"
#include "ops/effects.h"
#include "passes/argument_stack.h"

namespace torch_lazy {
namespace {

using Kind = OperatorForm::Kind;
using torch::jit::Node;
using torch::jit::Value;

// A tensor with metadata and no memory, for operators that look at nothing else.
at::Tensor without_memory(const c10::Storage& storage, c10::ScalarType dtype,
                          const Layout& layout) {
  const auto key = storage.device().is_meta() ? c10::DispatchKey::Meta : c10::DispatchKey::CPU;
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, layout.offset);
  return tensor;
}

c10::Storage storage_without_memory(int64_t bytes, c10::Device device) {
  return c10::Storage(c10::Storage::use_byte_size_t{}, size_t(bytes), c10::DataPtr(nullptr, device),
                      nullptr, /*resizable=*/false);
}

// Whether the operator looks for elements of memory beside those of its argument.
bool looks_beside(const c10::FunctionSchema& schema) {
  const std::string& name = schema.name();
  return schema.argumentIndexWithName("storage_offset").has_value() ||
         name == "aten::slice_inverse" || name == "aten::resize_" || name == "aten::resize_as_";
}

class Analyzer {
 public:
  explicit Analyzer(OperatorForms& forms) : forms_(forms) {}

  StorageAnalysis analyze(const torch::jit::Graph& graph, const std::vector<GraphInput>& inputs) {
    add_inputs(graph, inputs);
    for (const Node* node : graph.nodes()) {
      result_.nodes.emplace_back();
      if (node->kind() == c10::prim::Constant)
        add_constant(*node);
      else if (!node->kind().is_prim() && node->kind() != c10::aten::ScalarImplicit)
        add_operation(*node, result_.nodes.back());
    }
    return std::move(result_);
  }

 private:
  // Of a storage, beside what others see: made at the first use.
  struct Lookup {
    std::unordered_map<Layout, uint32_t, LayoutHash> views;
    c10::Storage storage;             // without memory
    std::vector<at::Tensor> tensors;  // by view
  };

  // ---- Storages and views ----

  static Layout layout_of(const Value* value) {
    const auto& type = value->type()->expectRef<c10::TensorType>();
    TORCH_CHECK(type.isComplete(), "%", value->debugName(), " has no complete type: ", type);
    const auto sizes = *type.sizes().concrete_sizes(), strides = *type.strides().concrete_sizes();
    Layout layout;
    layout.sizes.assign(sizes.begin(), sizes.end());
    layout.strides.assign(strides.begin(), strides.end());
    return layout;
  }

  static c10::ScalarType dtype_of(const Value* value) {
    return *value->type()->expectRef<c10::TensorType>().scalarType();
  }

  uint32_t add_storage(StorageInfo::Origin origin, c10::ScalarType dtype, int64_t bytes) {
    result_.storages.push_back({.origin = origin, .dtype = dtype, .bytes = bytes});
    lookups_.emplace_back();
    return uint32_t(result_.storages.size() - 1);
  }

  uint32_t view(uint32_t storage, const Layout& layout) {
    std::vector<Layout>& views = result_.storages[storage].views;
    auto& known = lookups_[storage].views;
    const auto [found, added] = known.emplace(layout, uint32_t(views.size()));
    if (added) views.push_back(layout);
    return found->second;
  }

  void add_root(const Value* value, uint32_t storage, const Layout& layout) {
    const uint32_t view = this->view(storage, layout);
    result_.storages[storage].roots.emplace_back(value, view);
    result_.places[value] = {storage, view};
  }

  void add_fresh(const Value* value, StorageInfo::Origin origin) {
    if (value->type()->expectRef<c10::TensorType>().undefined().value_or(false)) return;
    const Layout layout = layout_of(value);
    const c10::ScalarType dtype = dtype_of(value);
    const int64_t bytes = layout.end() * int64_t(c10::elementSize(dtype));
    add_root(value, add_storage(origin, dtype, bytes), layout);
  }

  void add_inputs(const torch::jit::Graph& graph, const std::vector<GraphInput>& inputs) {
    TORCH_CHECK(inputs.size() == graph.inputs().size(), "a graph of ", graph.inputs().size(),
                " inputs comes with ", inputs.size(), " descriptions of inputs");
    std::unordered_map<uint32_t, uint32_t> storages;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value* value = graph.inputs()[i];
      Layout layout = layout_of(value);
      layout.offset = inputs[i].offset;
      const c10::ScalarType dtype = dtype_of(value);
      const auto known = storages.find(inputs[i].storage);
      uint32_t storage;
      if (inputs[i].cpu || known == storages.end()) {
        storage = add_storage(StorageInfo::Origin::kInput, dtype, inputs[i].storage_bytes);
        result_.storages[storage].cpu = inputs[i].cpu;
        if (!inputs[i].cpu) storages.emplace(inputs[i].storage, storage);
      } else {
        storage = known->second;
        TORCH_CHECK(result_.storages[storage].dtype == dtype, "input %", value->debugName(), " (",
                    dtype, ") shares storage with an input of dtype ",
                    result_.storages[storage].dtype);
      }
      TORCH_CHECK(layout.end() * int64_t(c10::elementSize(dtype)) <= inputs[i].storage_bytes ||
                      layout.numel() == 0,
                  "input %", value->debugName(), " reaches beyond its storage of ",
                  inputs[i].storage_bytes, " bytes");
      add_root(value, storage, layout);
    }
  }

  void add_constant(const Node& node) {
    const auto constant = torch::jit::toIValue(node.output());
    if (!constant || !constant->isTensor()) return;
    const at::Tensor tensor = constant->toTensor();
    Layout layout;
    layout.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
    layout.strides.assign(tensor.strides().begin(), tensor.strides().end());
    const uint32_t storage =
        add_storage(StorageInfo::Origin::kConstant, tensor.scalar_type(), int64_t(tensor.nbytes()));
    add_root(node.output(), storage, layout);
  }

  // ---- Operations ----

  const Place& place(const Value* value) const {
    const auto found = result_.places.find(value);
    TORCH_CHECK(found != result_.places.end(), "%", value->debugName(), " is undefined");
    return found->second;
  }

  void add_operation(const Node& node, AnalyzedNode& analyzed) {
    analyzed.form = &forms_.of(node);
    analyzed.kind = analyzed.form->kind;
    if (looks_beside(analyzed.form->handle.schema())) {
      refuse_copy_of_view(node);
      if (analyzed.kind == Kind::kPure) refuse_part(node);
    }
    if (analyzed.kind == Kind::kView || analyzed.kind == Kind::kUnknown) {
      run(node, analyzed);
      analyzed.kind = Kind::kView;
      return;
    }
    for (const size_t argument : analyzed.form->written)
      for_each_tensor(node.inputs()[argument], [&](const Value* value) { write(node, value); });
    const Effects& effects = effects_of(analyzed.form->handle);
    for_each_returned_tensor(node, [&](size_t index, const Value* value) {
      const ReturnEffect& effect = effects.returns[index];
      if (analyzed.kind == Kind::kPure || effect.kind == ReturnKind::Fresh)
        return add_fresh(value, StorageInfo::Origin::kNode);
      const Value* argument = node.input(size_t(effect.argument));
      if (effect.kind != ReturnKind::SameAs || argument->type()->kind() != value->type()->kind())
        unsupported(node, "it returns views of what it writes");
      if (*argument->type() != *value->type())
        unsupported(node, "it resizes %" + argument->debugName());
      result_.places[value] = place(argument);
    });
  }

  void write(const Node& node, const Value* value) {
    const Place& written = place(value);
    StorageInfo& storage = result_.storages[written.storage];
    const Layout& layout = storage.views[written.view];
    if (storage.cpu) unsupported(node, "it writes a tensor of the CPU");
    if (storage.origin == StorageInfo::Origin::kConstant) unsupported(node, "it writes a constant");
    if (!has_distinct_elements(layout)) unsupported(node, "elements that it writes share memory");
    if (storage.reinterpreted)
      unsupported(node, "it writes memory that is also seen as another dtype or with other bits");
    if (layout.numel() > 0) storage.written = true;
  }

  // ---- Views ----

  // The tensor at a place, on the CPU and without memory.
  at::Tensor tensor_at(const Place& place) {
    const StorageInfo& storage = result_.storages[place.storage];
    Lookup& lookup = lookups_[place.storage];
    if (!lookup.storage) {
      lookup.storage = storage_without_memory(storage.bytes, c10::kCPU);
      storage_of_[lookup.storage.unsafeGetStorageImpl()] = place.storage;
    }
    if (lookup.tensors.size() <= place.view) lookup.tensors.resize(storage.views.size());
    at::Tensor& tensor = lookup.tensors[place.view];
    if (!tensor.defined())
      tensor = without_memory(lookup.storage, storage.dtype, storage.views[place.view]);
    return tensor;
  }

  // Runs the operator of a node, which has to return views, and gives them their places.
  void run(const Node& node, AnalyzedNode& analyzed) {
    const c10::Device device = analyzed.kind == Kind::kView ? c10::kCPU : c10::kMeta;
    const c10::OperatorHandle& handle = forms_.of(node).handle;
    const bool rebinds = handle.hasTag(at::Tag::inplace_view);
    std::unordered_map<const c10::StorageImpl*, uint32_t> apart;
    std::vector<c10::Storage> kept;  // keeps addresses unique while they name storages
    const auto tensor = [&](const Value* value) {
      const Place& at = place(value);
      if (device.is_cpu()) return rebinds ? at::alias(tensor_at(at)) : tensor_at(at);
      const StorageInfo& storage = result_.storages[at.storage];
      kept.push_back(storage_without_memory(storage.bytes, device));
      apart[kept.back().unsafeGetStorageImpl()] = at.storage;
      return without_memory(kept.back(), storage.dtype, storage.views[at.view]);
    };
    const auto& storages = device.is_cpu() ? storage_of_ : apart;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    torch::jit::Stack stack;
    try {
      for (size_t i = 0; i < node.inputs().size(); ++i)
        stack.push_back(
            argument_value(node.input(i), handle.schema().arguments().at(i).type(), tensor));
      handle.callBoxed(&stack);
    } catch (const c10::Error& error) {
      if (node.kind() == c10::aten::resize_ || node.kind() == c10::aten::resize_as_)
        unsupported(node, "it resizes %" + node.input(0)->debugName());
      unsupported(node, std::string("without memory it raises: ") + error.what_without_backtrace());
    }
    std::vector<at::Tensor> returned;
    for (const c10::IValue& value : stack) {
      if (value.isTensor()) returned.push_back(value.toTensor());
      if (!value.isTensorList()) continue;
      for (const at::Tensor& element : value.toTensorVector()) returned.push_back(element);
    }
    std::vector<const Value*> values;
    for_each_returned_tensor(node, [&](size_t, const Value* value) { values.push_back(value); });
    const size_t views =
        size_t(std::count_if(returned.begin(), returned.end(), [&](const at::Tensor& made) {
          return made.defined() && storages.count(made.storage().unsafeGetStorageImpl()) != 0;
        }));
    if (views != values.size() || views != returned.size())
      unsupported(node, "it copies where a view was expected");
    for (size_t i = 0; i < values.size(); ++i)
      add_view(node, analyzed, values[i], returned[i],
               storages.at(returned[i].storage().unsafeGetStorageImpl()));
  }

  void add_view(const Node& node, AnalyzedNode& analyzed, const Value* value,
                const at::Tensor& made, uint32_t storage) {
    if (made.scalar_type() != result_.storages[storage].dtype || made.is_conj() || made.is_neg())
      return reinterpret(node, analyzed, value, storage);
    Layout layout = layout_of(value);
    if (made.scalar_type() != dtype_of(value) || made.sizes() != c10::IntArrayRef(layout.sizes) ||
        made.strides() != c10::IntArrayRef(layout.strides))
      unsupported(node, "it returned " + describe(made) + " for %" + value->debugName());
    layout.offset = made.storage_offset();
    result_.places[value] = {storage, view(storage, layout)};
  }

  void reinterpret(const Node& node, AnalyzedNode& analyzed, const Value* value, uint32_t storage) {
    const c10::OperatorName& name = forms_.of(node).handle.operator_name();
    analyzed.copy =
        c10::Dispatcher::singleton().findSchema({name.name + "_copy", name.overload_name});
    if (!analyzed.copy)
      unsupported(node, "a view has another dtype than its storage, or conj or neg bits");
    if (!has_distinct_elements(layout_of(value)))
      unsupported(node, "elements of a view of another dtype, or with other bits, share memory");
    add_fresh(value, StorageInfo::Origin::kNode);
    result_.storages[storage].reinterpreted = true;
    result_.storages.back().reinterpreted = true;
    result_.storages.back().is_copy_of_view = true;
  }

  // Such a copy has the view's elements and nothing of the memory around them.
  void refuse_copy_of_view(const Node& node) const {
    for (const Value* argument : node.inputs())
      if (const auto found = result_.places.find(argument);
          found != result_.places.end() && result_.storages[found->second.storage].is_copy_of_view)
        unsupported(node,
                    "it looks for elements beside those of a view of another dtype, or "
                    "with other bits");
  }

  // An operator without views counts from the start of its argument's memory. Of a graph's input
  // that is known; what else it is given begins where the value does.
  void refuse_part(const Node& node) const {
    const auto found = result_.places.find(node.input(0));
    if (found == result_.places.end() || node.input(0)->node()->kind() == c10::prim::Param) return;
    if (result_.storages[found->second.storage].origin != StorageInfo::Origin::kNode ||
        result_.layout(found->second).offset != 0)
      unsupported(node, "it counts from the start of memory of which it is given a part");
  }

  OperatorForms& forms_;
  StorageAnalysis result_;
  std::vector<Lookup> lookups_;  // by storage
  std::unordered_map<const c10::StorageImpl*, uint32_t> storage_of_;
};

}  // namespace

StorageAnalysis analyze_storages(const torch::jit::Graph& graph,
                                 const std::vector<GraphInput>& inputs, OperatorForms& forms) {
  return Analyzer(forms).analyze(graph, inputs);
}

}  // namespace torch_lazy
