#include "codegen/expression_builder.h"

#include <c10/util/Exception.h>

#include <unordered_set>

#include "codegen/draft_expressions.h"
#include "codegen/loop_analysis.h"
#include "codegen/pointwise.h"

namespace torch_lazy::codegen {
namespace {

// Members that read each other at other points than their own are computed once for each of these:
// steps that each read a row and a column of what the step before made have as many expressions as
// the square of their number.
constexpr size_t kMostExpressionsOfValue = 512;

struct Unexpressible {
  NodeId node;
  // The node is a reduction that was asked for another point than its own, or what it reads would
  // make the kernel too large: a member is to blame that is not known yet.
  bool at_another_point = false;
};

class ExpressionBuilder {
 public:
  ExpressionBuilder(const LowerContext& context, const FusionGroup& group, Draft& draft)
      : context_(context), graph_(context.graph), group_(group), draft_(draft) {
    draft_.extents.assign(group.domain.begin(), group.domain.end());
    draft_.reduced = group.reduced;
    for (const auto* nodes : {&group.nodes, &group.inlined})
      for (const NodeId node : *nodes)
        for (const ValueId value : graph_.nodes[size_t(node)].outputs) members_.insert(value);
  }

  void build() {
    for (const ValueId value : group_.stored) store(value);
  }

 private:
  // ---- Maps ----

  size_t axes() const { return draft_.extents.size(); }

  // The axes that the dimensions of a value of the group run along: all, or the parallel axes
  // only.
  IndexMap own_map(ValueId id, NodeId node) const {
    const CoreValue& value = graph_.values[size_t(id)];
    IndexMap map(value.sizes.size(), Affine(axes()));
    for (const bool all : {true, false}) {
      size_t axis = 0;
      bool fits = true;
      for (size_t d = 0; d < value.sizes.size() && fits; ++d) {
        map[d] = Affine(axes());
        if (value.sizes[d] == 1) continue;
        while (!all && axis < axes() && draft_.reduced[axis]) ++axis;
        fits = axis < axes() && draft_.extents[axis] == value.sizes[d];
        if (fits) map[d].coefficients[axis++] = 1;
      }
      while (!all && axis < axes() && draft_.reduced[axis]) ++axis;
      if (fits && axis == axes()) return map;
    }
    throw Unexpressible{node};
  }

  // ---- Memory ----

  uint32_t buffer_of(ValueId id, bool written) {
    for (size_t i = 0; i < draft_.bindings.size(); ++i)
      if (draft_.bindings[i].value == id && draft_.bindings[i].written == written)
        return uint32_t(i);
    const CoreValue& value = graph_.values[size_t(id)];
    Buffer buffer;
    buffer.type = type_of(value.dtype);
    buffer.written = written;
    draft_.buffers.push_back(std::move(buffer));
    draft_.bindings.push_back({id, written});
    return uint32_t(draft_.buffers.size() - 1);
  }

  static Access access_of(const Affine& affine) {
    Access access;
    access.offset = Size::constant(affine.constant);
    for (const int64_t stride : affine.coefficients)
      access.strides.push_back(Size::constant(stride));
    return access;
  }

  // A number that each launch brings.
  ExprId word(BufferBinding::Word which, int64_t origin) {
    Buffer buffer;
    buffer.type = Type::kInt64;
    buffer.immediate = true;
    draft_.buffers.push_back(std::move(buffer));
    BufferBinding binding;
    binding.word = which;
    binding.origin = origin;
    draft_.bindings.push_back(binding);
    Expr expr;
    expr.op = Op::kLoad;
    expr.type = Type::kInt64;
    expr.buffer = uint32_t(draft_.buffers.size() - 1);
    expr.access = access_of(Affine(axes()));
    return add(draft_, std::move(expr));
  }

  ExprId load(ValueId id, Access access) {
    Expr expr;
    expr.op = Op::kLoad;
    expr.type = type_of(graph_.values[size_t(id)].dtype);
    expr.buffer = buffer_of(id, false);
    expr.access = std::move(access);
    expr.predicate = predicate_;
    return add(draft_, std::move(expr));
  }

  // A value in memory, itself or through views.
  struct Memory {
    ValueId base;
    Layout layout;  // from the start of the base's memory
  };

  Memory memory_of(ValueId id) const {
    const ValueId base = graph_.base_of(id);
    if (base == id) return {id, context_.layouts[size_t(id)]};
    const CoreNode& view = graph_.nodes[size_t(graph_.values[size_t(id)].producer)];
    Memory memory{base, view.layout};
    // A view of an input counts from the start of its storage, a binding from its first element.
    const CoreValue& base_value = graph_.values[size_t(base)];
    memory.layout.offset += base_value.producer == kNoId
                                ? -context_.input_offsets[size_t(base_value.input)]
                                : context_.layouts[size_t(base)].offset;
    return memory;
  }

  void store(ValueId id) {
    const CoreValue& value = graph_.values[size_t(id)];
    const IndexMap map = own_map(id, value.producer);
    const ExprId expr = evaluate(id, map, value.producer);
    Store store;
    store.buffer = buffer_of(id, true);
    store.access = access_of(address(map, context_.layouts[size_t(id)], axes()));
    store.expr = cast(draft_, expr, type_of(value.dtype));
    draft_.stores.push_back(std::move(store));
  }

  // ---- Values ----

  std::string key(ValueId id, const IndexMap& map) const {
    std::string key(reinterpret_cast<const char*>(&id), sizeof id);
    key.append(reinterpret_cast<const char*>(&predicate_), sizeof predicate_);
    for (const Affine& affine : map) {
      key.append(reinterpret_cast<const char*>(&affine.constant), sizeof(int64_t));
      key.append(reinterpret_cast<const char*>(affine.coefficients.data()),
                 sizeof(int64_t) * affine.coefficients.size());
    }
    return key;
  }

  // The element of the value that the map names. `reader` is who fails where it cannot be had.
  ExprId evaluate(ValueId id, const IndexMap& map, NodeId reader) {
    const std::string known = key(id, map);
    if (const auto found = evaluated_.find(known); found != evaluated_.end()) return found->second;
    if (draft_.exprs.size() >= kMostExpressionsOfValue && group_.nodes.size() > 1)
      throw Unexpressible{reader, /*at_another_point=*/true};
    const ExprId expr = compute(id, map, reader);
    evaluated_.emplace(known, expr);
    return expr;
  }

  // Of members that read at another point than their own, the one to cut the group before is that
  // which is computed at its own point itself.
  ExprId compute(ValueId id, const IndexMap& map, NodeId reader) {
    try {
      return compute_element(id, map, reader);
    } catch (const Unexpressible& failed) {
      const NodeId self = graph_.values[size_t(id)].producer;
      if (!failed.at_another_point || !members_.count(id) || !(map == own_map(id, self))) throw;
      throw Unexpressible{self};
    }
  }

  ExprId compute_element(ValueId id, const IndexMap& map, NodeId reader) {
    const CoreValue& value = graph_.values[size_t(id)];
    const CoreNode* node =
        value.producer == kNoId ? nullptr : &graph_.nodes[size_t(value.producer)];
    if (node && node->kind == CoreKind::kNumber)
      return number(draft_, node->number, type_of(value.dtype));
    if (node && node->kind == CoreKind::kView && members_.count(node->inputs[0]))
      return view_of_member(*node, map, reader);
    if (!node || !members_.count(id)) {
      const Memory memory = memory_of(id);
      return load(memory.base, access_of(address(map, memory.layout, axes())));
    }
    const NodeId self = value.producer;
    switch (node->kind) {
      case CoreKind::kPointwise: {
        std::vector<ExprId> arguments;
        for (const ValueId input : node->inputs)
          arguments.push_back(evaluate(input, broadcast(input, map), self));
        return pointwise(*node, value, arguments);
      }
      case CoreKind::kCopy:
        return cast(draft_, evaluate(node->inputs[0], broadcast(node->inputs[0], map), self),
                    type_of(value.dtype));
      case CoreKind::kFill:
        return number(draft_, node->number, type_of(value.dtype));
      case CoreKind::kArange:
        return range_element(draft_, *node, index_of(draft_, map[0]), type_of(value.dtype));
      case CoreKind::kReduction:
        return reduce(id, *node, map, self);
      case CoreKind::kScan:
        return scan(id, *node, map, self);
      case CoreKind::kGather:
        return gather(*node, map, self);
      case CoreKind::kJoin:
        return join(*node, value, map, self);
      default:
        throw Unexpressible{self};
    }
  }

  // Sizes broadcast from the right; a dimension of size 1 is read at 0.
  IndexMap broadcast(ValueId input, const IndexMap& map) const {
    const Extents& sizes = graph_.values[size_t(input)].sizes;
    IndexMap result(sizes.size(), Affine(axes()));
    const size_t skipped = map.size() - sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1) result[d] = map[skipped + d];
    return result;
  }

  ExprId view_of_member(const CoreNode& view, const IndexMap& map, NodeId reader) {
    const CoreValue& base = graph_.values[size_t(view.inputs[0])];
    const Affine linear = address(map, view.layout, axes());
    const auto index = index_at(linear, base.sizes, base.strides, draft_.extents);
    if (!index || !is_dense(base.sizes, base.strides)) throw Unexpressible{reader};
    return evaluate(view.inputs[0], *index, reader);
  }

  // The element of the last piece that has one there. What lies outside of a piece is not loaded,
  // and what is computed of it is not used.
  ExprId join(const CoreNode& node, const CoreValue& value, const IndexMap& map, NodeId self) {
    const Type type = type_of(value.dtype), computed = is_low(type) ? Type::kFloat : type;
    ExprId joined = kNoId;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Extents& sizes = graph_.values[size_t(node.inputs[i])].sizes;
      IndexMap index = map;
      for (size_t d = 0; d < map.size(); ++d) index[d].constant -= node.begins[i][d];
      for (const int64_t d : node.flipped) {
        Affine from_end(axes());
        from_end.constant = sizes[size_t(d)] - 1;
        index[size_t(d)] = from_end.add(index[size_t(d)], -1);
      }
      const Inside inside = is_inside(index, sizes);
      if (inside.never) continue;
      const ExprId outer = predicate_;
      if (inside.condition != kNoId) predicate_ = both(outer, inside.condition);
      const ExprId element = cast(draft_, evaluate(node.inputs[i], index, self), computed);
      predicate_ = outer;
      const bool always = joined == kNoId || inside.condition == kNoId;
      joined = always
                   ? element
                   : operation(draft_, Op::kSelect, computed, {inside.condition, element, joined});
    }
    return cast(draft_, joined, type);
  }

  struct Inside {
    bool never = false;
    ExprId condition = kNoId;  // always, without
  };

  Inside is_inside(const IndexMap& map, const Extents& sizes) {
    Inside inside;
    for (size_t d = 0; d < map.size(); ++d) {
      const auto [low, high] = range_of(map[d], draft_.extents);
      if (high < 0 || low >= sizes[d]) inside.never = true;
      if (low < 0) restrict(inside, Op::kGreaterEqual, map[d], 0);
      if (high >= sizes[d]) restrict(inside, Op::kLess, map[d], sizes[d]);
    }
    return inside;
  }

  void restrict(Inside& inside, Op compare, const Affine& index, int64_t bound) {
    Affine varying = index;
    varying.constant = 0;
    const ExprId at = index_of(draft_, varying);
    const ExprId limit = integer(draft_, bound - index.constant, Type::kInt64);
    const ExprId within = operation(draft_, compare, Type::kBool, {at, limit});
    inside.condition = both(inside.condition, within);
  }

  ExprId both(ExprId a, ExprId b) {
    return a == kNoId ? b : operation(draft_, Op::kAnd, Type::kBool, {a, b});
  }

  ExprId pointwise(const CoreNode& node, const CoreValue& value, std::vector<ExprId> arguments) {
    const auto add_operation = [&](Op op, Type type, std::vector<ExprId> operands) {
      if (op == Op::kDiv && is_floating(type)) {
        const ExprId choice = quotient_of_bool(draft_, type, operands[0], operands[1]);
        if (choice != kNoId) return choice;
      }
      return operation(draft_, op, type, std::move(operands));
    };
    const PointwiseBuilder builder{add_operation, [&](ExprId id) { return type_at(draft_, id); }};
    return build_pointwise(node.op, type_of(value.dtype), std::move(arguments), builder);
  }

  // A result of a reduction exists only once per point of the parallel axes: no other index can be
  // had.
  ExprId reduce(ValueId id, const CoreNode& node, const IndexMap& map, NodeId self) {
    const CoreValue& input = graph_.values[size_t(node.inputs[0])];
    std::vector<bool> reduced(input.sizes.size());
    bool single = true;  // every reduction dimension has one element: nothing is reduced
    for (const int64_t d : node.dims) {
      reduced[size_t(d)] = true;
      single &= input.sizes[size_t(d)] == 1;
    }
    if (!single && !(map == own_map(id, self))) throw Unexpressible{self, true};
    IndexMap inner(input.sizes.size(), Affine(axes()));
    size_t axis = 0, parallel = 0;
    for (size_t d = 0; d < input.sizes.size(); ++d) {
      const size_t own = parallel;
      if (!reduced[d] || node.keepdim) ++parallel;
      if (!reduced[d]) inner[d] = map[own];
      if (!reduced[d] || input.sizes[d] == 1) continue;
      while (axis < axes() && !draft_.reduced[axis]) ++axis;
      if (axis == axes() || draft_.extents[axis] != input.sizes[d]) throw Unexpressible{self};
      inner[d].coefficients[axis++] = 1;
    }
    while (axis < axes() && !draft_.reduced[axis]) ++axis;
    if (!single && axis != axes()) throw Unexpressible{self};
    const Type result = type_of(graph_.values[size_t(id)].dtype);
    if (single) {
      const bool index = is_arg_reduction(node.op);
      const ExprId argument = evaluate(node.inputs[0], inner, self);
      if (index) return integer(draft_, 0, result);
      // The sum begins with a zero, which a negative one is lost to.
      if (node.op == Op::kReduceSum && primitive::is_floating(result))
        return operation(draft_, Op::kAdd, result,
                         {cast(draft_, argument, result), number(draft_, 0, result)});
      const bool truth = node.op == Op::kReduceAnd || node.op == Op::kReduceOr;
      return cast(draft_, truth ? cast(draft_, argument, Type::kBool) : argument, result);
    }
    return reduction(draft_, node.op, result, evaluate(node.inputs[0], inner, self));
  }

  // As a reduction: steps are made one after the other, at the point where the loops are.
  ExprId scan(ValueId id, const CoreNode& node, const IndexMap& map, NodeId self) {
    if (predicate_ != kNoPredicate || !(map == own_map(id, self))) throw Unexpressible{self, true};
    const Type result = type_of(graph_.values[size_t(id)].dtype);
    // As ATen's kernels on the CPU.
    const Type computed = is_low(result)           ? Type::kFloat
                          : result == Type::kFloat ? Type::kDouble
                                                   : result;
    const ExprId argument = cast(draft_, evaluate(node.inputs[0], map, self), result);
    return cast(draft_, operation(draft_, node.op, computed, {cast(draft_, argument, computed)}),
                result);
  }

  // A device that would have to be waited for checks indices itself.
  ExprId within(ExprId position, int64_t limit, const CoreNode& node) {
    if (failure_word_ == kNoId) failure_word_ = word(BufferBinding::Word::kFailures, 0);
    return operation(draft_, Op::kWithin, Type::kInt64,
                     {position, integer(draft_, limit, Type::kInt64), failure_word_,
                      word(BufferBinding::Word::kTicket, node.origin)});
  }

  // On the CPU indices were checked before the kernel runs. The source is read at an index that
  // only the kernel knows, so it must lie in memory; but for a range, whose elements are computed.
  ExprId gather(const CoreNode& node, const IndexMap& map, NodeId self) {
    const ValueId source = node.inputs[0], index = node.inputs[1];
    const Memory memory = memory_of(source);
    const NodeId producer = graph_.values[size_t(memory.base)].producer;
    const bool is_member = members_.count(memory.base) != 0;
    const bool is_range = is_member && graph_.nodes[size_t(producer)].kind == CoreKind::kArange;
    if (is_member && !is_range) throw Unexpressible{self};
    const size_t d = size_t(node.dims[0]);
    const CoreValue& index_value = graph_.values[size_t(index)];
    IndexMap at_index, at_source(memory.layout.sizes.size(), Affine(axes()));
    switch (node.gather) {
      case GatherKind::kRows:
        at_index.assign(map.begin(), map.end() - 1);
        at_source[1] = map.back();
        break;
      case GatherKind::kIndexSelect:
        if (!index_value.sizes.empty()) at_index = {map[d]};
        for (size_t i = 0; i < map.size(); ++i)
          if (i != d) at_source[i] = map[i];
        break;
      case GatherKind::kElements:
        at_index = map;
        for (size_t i = 0; i < map.size(); ++i)
          if (i != d) at_source[i] = map[i];
        break;
    }
    ExprId position = cast(draft_, evaluate(index, broadcast(index, at_index), self), Type::kInt64);
    if (context_.is_cuda()) {
      if (memory.layout.sizes[d] == 0) throw Unexpressible{self};  // there is nothing to read
      position = within(position, memory.layout.sizes[d], node);
    }
    const Affine around = address(at_source, memory.layout, axes());
    if (is_range) {
      const ExprId stride = integer(draft_, memory.layout.strides[d], Type::kInt64);
      const ExprId along = operation(draft_, Op::kMul, Type::kInt64, {position, stride});
      const ExprId at =
          operation(draft_, Op::kAdd, Type::kInt64, {along, index_of(draft_, around)});
      return range_element(draft_, graph_.nodes[size_t(producer)], at,
                           type_of(graph_.values[size_t(source)].dtype));
    }
    Access access = access_of(around);
    access.indirect.push_back({position, Size::constant(memory.layout.strides[d])});
    return load(memory.base, std::move(access));
  }

  const LowerContext& context_;
  const CoreGraph& graph_;
  const FusionGroup& group_;
  Draft& draft_;
  std::unordered_set<ValueId> members_;  // values that the group's nodes make
  std::unordered_map<std::string, ExprId> evaluated_;
  ExprId predicate_ = kNoId;  // of all that is loaded
  ExprId failure_word_ = kNoId;
};

}  // namespace

std::optional<LowerFailure> build_expressions(const LowerContext& context, const FusionGroup& group,
                                              Draft& draft) {
  try {
    ExpressionBuilder(context, group, draft).build();
  } catch (const Unexpressible& failed) {
    return LowerFailure{failed.node};
  }
  return std::nullopt;
}

}  // namespace torch_lazy::codegen
