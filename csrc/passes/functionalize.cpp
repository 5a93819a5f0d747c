#include "passes/functionalize.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <unordered_map>
#include <utility>

#include "ir/node_operator.h"
#include "ops/effects.h"
#include "passes/argument_stack.h"
#include "passes/dead_code.h"
#include "passes/functional_dtype.h"
#include "passes/graph_builder.h"
#include "passes/operator_form.h"
#include "passes/storage_analysis.h"
#include "passes/storage_contents.h"

namespace torch_lazy {
namespace {

using Kind = OperatorForm::Kind;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

std::vector<int64_t> offsets_of(const std::vector<GraphInput>& inputs) {
  std::vector<int64_t> offsets;
  for (const GraphInput& input : inputs) offsets.push_back(input.offset);
  return offsets;
}

class Functionalizer {
 public:
  Functionalizer(const Graph& recorded, const std::vector<GraphInput>& inputs)
      : recorded_(recorded),
        analysis_(analyze_storages(recorded, inputs, forms_)),
        graph_(std::make_shared<Graph>()),
        offsets_(offsets_of(inputs)),
        builder_(*graph_, offsets_),
        contents_(analysis_, builder_) {}

  std::shared_ptr<Graph> run() {
    builder_.insert_before(graph_->return_node());
    for (const Value* input : recorded_.inputs()) {
      Value* value = graph_->addInput(input->hasDebugName() ? input->debugName() : "");
      value->setType(input->type());
      contents_.define(input, value);
    }
    size_t index = 0;
    for (const Node* node : recorded_.nodes()) {
      origin_ = index;
      const AnalyzedNode& analyzed = analysis_.nodes[index++];
      if (!analyzed.form) continue;
      builder_.insert_before(graph_->return_node());
      add(*node, analyzed);
      for (Node* made : builder_.inserted()) stand_for(*made, *node);
    }
    builder_.insert_before(graph_->return_node());
    std::vector<Place> roots;
    for (const Value* output : recorded_.outputs()) roots.push_back(analysis_.places.at(output));
    contents_.finish(roots);
    builder_.order_constants();
    remove_dead_code(*graph_, removable);
    return graph_;
  }

 private:
  void stand_for(Node& made, const Node& recorded) const {
    made.setSourceRange(recorded.sourceRange());
    made.i_(kOriginAttribute, int64_t(origin_));
  }

  Node* insert(Node* made, const Node& recorded) {
    stand_for(*made, recorded);
    return graph_->insertNode(made);
  }

  // ---- Arguments ----

  // What stands for a recorded value now. Constants are made where they are first used.
  Value* argument(const Value* recorded, const Node& user) {
    const Node* node = recorded->node();
    if (const auto made = values_.find(recorded); made != values_.end()) return made->second;
    if (node->kind() == c10::prim::ListConstruct) {
      std::vector<Value*> elements;
      for (const Value* element : node->inputs()) elements.push_back(argument(element, user));
      const auto& type = recorded->type()->expectRef<c10::ListType>();
      return insert(graph_->createList(type.getElementType(), elements), user)->output();
    }
    const bool constant = node->kind() == c10::prim::Constant;
    if (constant || node->kind() == c10::prim::AutogradZero ||
        node->kind() == c10::aten::ScalarImplicit) {
      Node* copy = graph_->createClone(const_cast<Node*>(node),
                                       [&](Value* input) { return argument(input, user); });
      graph_->insertNode(copy);
      return values_[recorded] = copy->output();
    }
    const auto place = analysis_.places.find(recorded);
    TORCH_CHECK(place != analysis_.places.end(), "'", operator_name(&user), "' reads %",
                recorded->debugName(), ", which nothing makes");
    const StorageInfo& storage = analysis_.storages[place->second.storage];
    if (storage.origin == StorageInfo::Origin::kConstant)
      contents_.define(storage.roots[0].first, argument(storage.roots[0].first, user));
    return contents_.read(place->second);
  }

  // ---- Operators ----

  void add(const Node& node, const AnalyzedNode& analyzed) {
    const OperatorForm& form = *analyzed.form;
    switch (analyzed.kind) {
      case Kind::kView:
      case Kind::kUnknown:
        if (analyzed.copy) add_copy_of_view(node, *analyzed.copy);
        return;  // others are read where they are used
      case Kind::kCopy:
        check_overlap(node, form);
        return add_copies(node);
      case Kind::kFill:
        return add_fills(node);
      case Kind::kMutation:
        check_overlap(node, form);
        return add_mutation(node, form);
      case Kind::kPure:
        return add_pure(node);
    }
  }

  // Names and types of what a node returns, and what lists are unpacked into.
  void define_return(const Value* recorded, Value* value) {
    value->setType(recorded->type());
    if (recorded->hasDebugName()) value->setDebugName(recorded->debugName());
    if (recorded->type()->kind() == c10::TypeKind::ListType) {
      for (const torch::jit::Use& use : recorded->uses()) {
        const auto elements = use.user->outputs();
        Node* unpack = insert(graph_->createListUnpack(value, elements.size()), *recorded->node());
        for (size_t i = 0; i < elements.size(); ++i) define_return(elements[i], unpack->output(i));
      }
    } else if (analysis_.places.count(recorded)) {
      contents_.define(recorded, value);
    } else {
      values_[recorded] = value;  // undefined, or no tensor
    }
  }

  std::vector<Value*> arguments_of(const Node& node) {
    std::vector<Value*> arguments;
    for (const Value* input : node.inputs()) arguments.push_back(argument(input, node));
    return arguments;
  }

  void add_pure(const Node& node) {
    Node* made = graph_->create(node.kind(), arguments_of(node), node.outputs().size());
    made->copyAttributes(node);
    insert(made, node);
    for (size_t i = 0; i < node.outputs().size(); ++i)
      define_return(node.output(i), made->output(i));
  }

  void add_copy_of_view(const Node& node, const c10::OperatorHandle& copy) {
    define_return(node.output(0), insert_call(node, copy.schema(), arguments_of(node))->output());
  }

  // A call of another operator than the recorded node's.
  Node* insert_call(const Node& node, const c10::FunctionSchema& schema,
                    const std::vector<Value*>& inputs) {
    Node* made =
        graph_->create(c10::Symbol::fromQualString(schema.name()), inputs, schema.returns().size());
    insert(made, node);
    choose_overload(*made, schema);
    return made;
  }

  std::vector<Place> places_of(const Value* argument) const {
    std::vector<Place> places;
    for_each_tensor(argument,
                    [&](const Value* value) { places.push_back(analysis_.places.at(value)); });
    return places;
  }

  // Raises where eager's result depends on the order in which it goes over the elements:
  // what is written is also read through another argument (each element by itself is well).
  void check_overlap(const Node& node, const OperatorForm& form) const {
    if (form.written.empty()) return;
    struct Use {
      size_t argument, element;
      Place place;
      bool written;
    };
    std::unordered_map<uint32_t, std::vector<Use>> uses;
    const auto written = [&](size_t argument) {
      return std::find(form.written.begin(), form.written.end(), argument) != form.written.end();
    };
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const std::vector<Place> places = places_of(node.input(i));
      for (size_t j = 0; j < places.size(); ++j)
        uses[places[j].storage].push_back({i, j, places[j], written(i)});
    }
    const bool each_by_itself =
        form.kind == Kind::kCopy || form.handle.hasTag(at::Tag::pointwise) ||
        (form.functional && form.functional->hasTag(at::Tag::pointwise)) ||
        node.input(form.written[0])->type()->kind() == c10::TypeKind::ListType;
    for (const auto& [storage, in_storage] : uses) {
      for (const Use& use : in_storage) {
        if (!use.written) continue;
        for (const Use& other : in_storage) {
          if (&use == &other ||
              disjoint(analysis_.layout(use.place), analysis_.layout(other.place)))
            continue;
          const bool same = use.place == other.place && use.element == other.element;
          if (!same || !each_by_itself || other.written)
            unsupported(node, "it writes memory that another argument shares");
        }
      }
    }
  }

  // The elements of an argument that is a tensor or a list of tensors.
  static std::vector<const Value*> elements_of(const Value* argument) {
    std::vector<const Value*> elements;
    if (argument->node()->kind() == c10::prim::ListConstruct)
      elements.assign(argument->node()->inputs().begin(), argument->node()->inputs().end());
    else
      elements.push_back(argument);
    return elements;
  }

  void add_copies(const Node& node) {
    const auto destinations = elements_of(node.input(0)), sources = elements_of(node.input(1));
    if (destinations.size() != sources.size()) unsupported(node, "its lists differ in length");
    for (size_t i = 0; i < destinations.size(); ++i) {
      const Place& place = analysis_.places.at(destinations[i]);
      const auto from = analysis_.places.find(sources[i]);
      if (from != analysis_.places.end() && from->second == place) continue;
      Value* source = argument(sources[i], node);
      const TensorInfo to = contents_.type_to_write(place);
      const TensorInfo given = info_of(source);
      if (given.device != to.device) source = uploaded(source, to);
      if (info_of(source).dtype != to.dtype) {
        source = builder_.to(source, to.dtype);
        // What was just made may as well lie where it is going.
        if (given.sizes == to.sizes && source->node()->kind() == c10::aten::_to_copy)
          source->setType(to.type());
      }
      contents_.write(place, builder_.expand(source, to.sizes), origin_);
    }
  }

  // On the device and in the dtype of what it is copied to.
  Value* uploaded(Value* source, const TensorInfo& to) {
    const TensorInfo given = info_of(source);
    TensorInfo made{to.dtype, to.device, given.sizes, {}};
    made.strides = pointwise_strides(made.sizes, {&given});
    Value* const no = builder_.none();
    Value* const copy =
        builder_.call("aten::_to_copy", "",
                      {source, builder_.integer(int64_t(made.dtype)), no,
                       builder_.device_argument(made.device), no, builder_.boolean(false), no},
                      made);
    copy->node()->i_(kLibraryAttribute, 1);  // a kernel reads memory of its own device
    return copy;
  }

  void add_fills(const Node& node) {
    for (const Value* destination : elements_of(node.input(0))) {
      const Place& place = analysis_.places.at(destination);
      const TensorInfo type = contents_.type_to_write(place);
      Value* number =
          node.inputs().size() > 1 ? argument(node.input(1), node) : builder_.integer(0);
      Value* const no = builder_.none();
      Value* value = builder_.call(
          "aten::full", "",
          {builder_.integers(type.sizes), number, builder_.integer(int64_t(type.dtype)), no,
           builder_.device_argument(type.device), no},
          type);
      contents_.write(place, value, origin_);
    }
  }

  void add_mutation(const Node& node, const OperatorForm& form) {
    const c10::FunctionSchema& schema = form.functional->schema();
    std::vector<Place> places;
    std::vector<c10::ScalarType> wanted;
    for (const size_t argument : form.written)
      for (const Place& place : places_of(node.input(argument))) {
        places.push_back(place);
        wanted.push_back(analysis_.storages[place.storage].dtype);
      }
    FunctionalDtypes dtypes;
    if (!wanted.empty()) dtypes = dtypes_.of(node, form, wanted);

    std::vector<Value*> inputs;
    for (size_t i = 0; i < form.arguments.size(); ++i) {
      const std::string& name = schema.arguments()[i].name();
      const std::optional<size_t> from = form.arguments[i];
      const bool like_written = !from || (dtypes.set_dtype && name == "dtype");
      inputs.push_back(like_written ? option_of(contents_.type_to_write(places[0]), name)
                                    : argument(node.input(*from), node));
    }
    Node* const made = insert_call(node, schema, inputs);

    size_t next = 0;
    const Effects& effects = effects_of(form.handle);
    for (size_t i = 0; i < node.outputs().size(); ++i)
      if (effects.returns[i].kind == ReturnKind::Fresh)
        define_return(node.output(i), made->output(next++));
    size_t place = 0;
    for (const size_t argument : form.written) {
      Value* value = made->output(next++);
      std::vector<Value*> results{value};
      if (node.input(argument)->type()->kind() == c10::TypeKind::ListType) {
        value->setType(c10::ListType::ofTensors());
        const size_t count = places_of(node.input(argument)).size();
        const auto unpacked = insert(graph_->createListUnpack(value, count), node)->outputs();
        results.assign(unpacked.begin(), unpacked.end());
      }
      for (Value* result : results) {
        write_result(places[place], result, dtypes.computed[place]);
        ++place;
      }
    }
    TORCH_INTERNAL_ASSERT(place == places.size());
  }

  // How a new tensor of that kind is asked for.
  Value* option_of(const TensorInfo& type, const std::string& option) {
    if (option == "dtype") return builder_.integer(int64_t(type.dtype));
    if (option == "device") return builder_.device_argument(type.device);
    return builder_.none();
  }

  void write_result(const Place& place, Value* result, c10::ScalarType computed) {
    const TensorInfo wanted = contents_.type_to_write(place);
    TensorInfo type = wanted;
    type.dtype = computed;
    result->setType(type.type());
    if (computed != wanted.dtype) {
      result = builder_.to(result, wanted.dtype);
      result->setType(wanted.type());
    }
    contents_.write(place, result, origin_);
  }

  // Where nothing reads it.
  static bool removable(const Node& node) {
    if (node.kind().is_prim() || node.kind() == c10::aten::ScalarImplicit) return true;
    return effects_of(operator_of(&node)).pure();
  }

  const Graph& recorded_;
  OperatorForms forms_;
  const StorageAnalysis analysis_;
  const std::shared_ptr<Graph> graph_;
  const std::vector<int64_t> offsets_;  // of inputs, for the builder
  GraphBuilder builder_;
  StorageContents contents_;
  FunctionalDtypeFinder dtypes_;
  std::unordered_map<const Value*, Value*> values_;  // of constants, and of what has no place
  size_t origin_ = 0;                                // of the node being added
};

}  // namespace

std::shared_ptr<Graph> functionalize(const Graph& recorded, const std::vector<GraphInput>& inputs) {
  return Functionalizer(recorded, inputs).run();
}

}  // namespace torch_lazy
