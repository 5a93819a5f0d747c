#include "passes/graph_builder.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "ir/node_operator.h"
#include "passes/constant_uses.h"
#include "passes/layout.h"

namespace torch_lazy {

using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

const c10::Symbol kOriginAttribute = c10::Symbol::attr("origin");
const c10::Symbol kLibraryAttribute = c10::Symbol::attr("library");
const c10::Symbol kKernelAttribute = c10::Symbol::attr("kernel");

// ---- Types ----

int64_t TensorInfo::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

c10::TensorTypePtr TensorInfo::type() const {
  return c10::TensorType::create(dtype, device, c10::VaryingShape<int64_t>(sizes),
                                 c10::VaryingShape<int64_t>(strides), std::nullopt);
}

bool has_complete_type(const Value* value) {
  return value->type()->kind() == c10::TypeKind::TensorType &&
         value->type()->expectRef<c10::TensorType>().isComplete();
}

bool is_view(const Value* value) {
  return value->node()->kind() == c10::aten::as_strided;
}

bool is_made(const Value* value) {
  return !is_view(value) && value->node()->kind() != c10::prim::Param &&
         value->node()->kind() != c10::prim::Constant;
}

TensorInfo info_of(const Value* value) {
  TORCH_CHECK(has_complete_type(value), "%", value->debugName(),
              " has no complete tensor type but ", *value->type());
  const auto& type = value->type()->expectRef<c10::TensorType>();
  return {*type.scalarType(), *type.device(), *type.sizes().concrete_sizes(),
          *type.strides().concrete_sizes()};
}

std::vector<int64_t> contiguous_strides(c10::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = next;
    next *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

std::vector<int64_t> broadcast_sizes(c10::IntArrayRef a, c10::IntArrayRef b) {
  if (a.size() < b.size()) std::swap(a, b);
  std::vector<int64_t> sizes = a.vec();
  const size_t shift = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& size = sizes[shift + i];
    TORCH_CHECK(size == b[i] || size == 1 || b[i] == 1, "sizes ", a, " and ", b,
                " do not broadcast");
    if (size == 1) size = b[i];
  }
  return sizes;
}

std::vector<int64_t> pointwise_strides(c10::IntArrayRef sizes,
                                       c10::ArrayRef<const TensorInfo*> operands) {
  for (const TensorInfo* operand : operands)
    if (sizes == c10::IntArrayRef(operand->sizes) && is_dense(operand->sizes, operand->strides))
      return operand->strides;
  return contiguous_strides(sizes);
}

// ---- Constants ----

std::optional<c10::IValue> constant_value(const Value* value) {
  const Node* node = value->node();
  if (node->kind() == c10::prim::Constant) {
    // A list read from text is an attribute of another kind than one that was inserted.
    if (node->hasAttribute(c10::attr::value) &&
        node->kindOf(c10::attr::value) == torch::jit::AttributeKind::is)
      return c10::IValue(node->is(c10::attr::value));
    return torch::jit::toIValue(value);
  }
  if (node->kind() == c10::prim::AutogradZero) return c10::IValue();
  if (node->kind() == c10::aten::ScalarImplicit) {
    const auto inner = constant_value(node->input());
    if (!inner) return std::nullopt;
    return c10::IValue(inner->toTensor().item());
  }
  if (node->kind() != c10::prim::ListConstruct) return std::nullopt;
  c10::impl::GenericList items(node->output()->type()->expectRef<c10::ListType>().getElementType());
  for (const Value* input : node->inputs()) {
    const auto item = constant_value(input);
    if (!item) return std::nullopt;
    items.push_back(*item);
  }
  return c10::IValue(std::move(items));
}

std::optional<at::Scalar> constant_number(const Value* value) {
  const auto kind = value->node()->kind();
  if (kind != c10::prim::Constant && kind != c10::aten::ScalarImplicit) return std::nullopt;
  const auto constant = constant_value(value);
  if (!constant) return std::nullopt;
  if (constant->isScalar()) return constant->toScalar();
  if (!constant->isTensor() || constant->toTensor().dim() != 0) return std::nullopt;
  return constant->toTensor().item();
}

bool is_wrapped_number(const Value* value) {
  const auto constant = constant_value(value);
  return constant && constant->isTensor() && constant->toTensor().defined() &&
         constant->toTensor().unsafeGetTensorImpl()->is_wrapped_number();
}

void move_name(Value* from, Value* to) {
  if (!from->hasDebugName() || to->hasDebugName()) return;
  const std::string name = from->debugName();
  from->setDebugName("");
  to->setDebugName(name);
}

GraphBuilder::GraphBuilder(Graph& graph, c10::IntArrayRef input_offsets)
    : graph_(graph), input_offsets_(input_offsets) {}

void GraphBuilder::make_for(Node* node, Node* next) {
  stand_for(node);
  next_ = next;
  inserted_.clear();
}

void GraphBuilder::stand_for(Node* node) {
  source_ = node;
  origin_.reset();
  if (node->hasAttribute(kOriginAttribute)) origin_ = node->i(kOriginAttribute);
}

void GraphBuilder::insert_before(Node* node) {
  make_for(node, node);
}

void GraphBuilder::append_for(Node* node) {
  make_for(node, graph_.return_node());
}

// Each goes in front of all nodes, where TorchScript need not renumber others, as it often must
// between two nodes.
void GraphBuilder::order_constants() {
  for (size_t i = made_constants_.size(); i-- > 0;) {
    Node* const first = *graph_.nodes().begin();
    if (made_constants_[i] != first) made_constants_[i]->moveBefore(first);
  }
  made_constants_.clear();
}

Value* GraphBuilder::constant(const std::string& key, const c10::IValue& value) {
  Value*& known = constants_[key];
  if (known && known->uses().size() < kMostUsesOfConstant) return known;
  torch::jit::WithInsertPoint at(*graph_.nodes().begin());
  known = graph_.insertConstant(value);
  known->node()->setSourceRange({});
  made_constants_.push_back(known->node());
  return known;
}

Value* GraphBuilder::none() {
  return constant("none", {});
}

Value* GraphBuilder::device_argument(c10::Device device) {
  return device.is_cpu() ? none() : constant("d" + device.str(), device);
}

Value* GraphBuilder::undefined() {
  Value*& known = constants_["undefined"];
  if (known && known->uses().size() < kMostUsesOfConstant) return known;
  Node* node = graph_.createAutogradZero();
  node->output()->setType(c10::TensorType::get());
  node->insertBefore(*graph_.nodes().begin());
  made_constants_.push_back(node);
  return known = node->output();
}

Value* GraphBuilder::boolean(bool value) {
  return constant(value ? "true" : "false", value);
}

Value* GraphBuilder::integer(int64_t value) {
  return constant("i" + std::to_string(value), value);
}

namespace {

std::string raw_bytes(const void* data, size_t count) {
  return {static_cast<const char*>(data), count};
}

}  // namespace

Value* GraphBuilder::real(double value) {
  return constant("f" + raw_bytes(&value, sizeof value), value);
}

Value* GraphBuilder::string(const std::string& value) {
  return constant("s" + value, value);
}

Value* GraphBuilder::integers(c10::IntArrayRef values) {
  return constant("l" + raw_bytes(values.data(), values.size() * sizeof(int64_t)), values);
}

Value* GraphBuilder::scalar(const at::Scalar& value) {
  if (value.isComplex()) {
    const c10::complex<double> number = value.toComplexDouble();
    return constant("c" + raw_bytes(&number, sizeof number), number);
  }
  return value.isFloatingPoint() ? real(value.toDouble()) : integer(value.toLong());
}

Value* GraphBuilder::number(const at::Scalar& value, c10::ScalarType dtype) {
  // By the tensor's bytes, so that two numbers that round to one are one constant.
  const at::Tensor tensor = at::scalar_tensor(value, at::TensorOptions(value.type())).to(dtype);
  return constant(
      "t" + std::to_string(int(dtype)) + ":" + raw_bytes(tensor.const_data_ptr(), tensor.nbytes()),
      tensor);
}

// ---- Nodes ----

Node* GraphBuilder::insert(Node* node) {
  TORCH_INTERNAL_ASSERT(next_, "insert_before or append_for comes first");
  node->setSourceRange(source_->sourceRange());
  if (origin_) node->i_(kOriginAttribute, *origin_);
  node->insertBefore(next_);
  inserted_.push_back(node);
  return node;
}

const GraphBuilder::Kind& GraphBuilder::kind_of(const char* name, const char* overload,
                                                Node* sample) {
  std::string key = std::string(name) + "." + overload;
  const auto known = kinds_.find(key);
  if (known != kinds_.end()) return known->second;
  const auto* found = sample->maybeOperator();
  const bool same = found && found->schema().overload_name() == overload;
  return kinds_.emplace(std::move(key), Kind{sample->kind(), !same}).first->second;
}

Value* GraphBuilder::call(const char* name, const char* overload, c10::ArrayRef<Value*> inputs,
                          const TensorInfo& type) {
  Node* node = graph_.create(c10::Symbol::fromQualString(name), inputs, 1);
  node->output()->setType(type.type());
  // The overload found is the same for all nodes made here: they differ only in values.
  if (kind_of(name, overload, node).needs_overload) node->s_(kOverloadAttribute, overload);
  return insert(node)->output();
}

Value* GraphBuilder::call_like(const Node* node, c10::ArrayRef<Value*> inputs,
                               const TensorInfo& type) {
  Node* const made = graph_.create(node->kind(), inputs, 1);
  made->output()->setType(type.type());
  if (node->hasAttribute(kOverloadAttribute))
    made->s_(kOverloadAttribute, node->s(kOverloadAttribute));
  return insert(made)->output();
}

Value* GraphBuilder::list(c10::ArrayRef<Value*> tensors) {
  return insert(graph_.createList(c10::TensorType::get(), tensors))->output();
}

Value* GraphBuilder::pointwise(const char* name, const char* overload,
                               c10::ArrayRef<Value*> operands, c10::ScalarType dtype,
                               c10::ArrayRef<Value*> others) {
  std::vector<TensorInfo> infos;
  std::vector<const TensorInfo*> pointers;
  infos.reserve(operands.size());
  TensorInfo type;
  type.dtype = dtype;
  for (const Value* operand : operands) {
    infos.push_back(info_of(operand));
    pointers.push_back(&infos.back());
    type.sizes = broadcast_sizes(type.sizes, infos.back().sizes);
    // Numbers, constants or not, lie on the CPU whatever the graph's device.
    const c10::Device device = infos.back().device;
    if (type.device.is_cpu() && operand->node()->kind() != c10::prim::Constant)
      type.device = device;
  }
  type.strides = pointwise_strides(type.sizes, pointers);
  std::vector<Value*> inputs = operands.vec();
  inputs.insert(inputs.end(), others.begin(), others.end());
  return call(name, overload, inputs, type);
}

Value* GraphBuilder::to(Value* value, c10::ScalarType dtype) {
  TensorInfo info = info_of(value);
  if (info.dtype == dtype) return value;
  if (value->node()->kind() == c10::prim::Constant && info.sizes.empty())
    return number(*constant_number(value), dtype);
  info.dtype = dtype;
  info.strides = pointwise_strides(info.sizes, {&info});
  Value* const no = none();
  return call("aten::_to_copy", "",
              {value, integer(int64_t(dtype)), no, no, no, boolean(false), no}, info);
}

Value* GraphBuilder::clone(Value* value, const TensorInfo& type) {
  return call("aten::clone", "", {value, none()}, type);
}

Value* GraphBuilder::full(const at::Scalar& value, const TensorInfo& type) {
  Value* const no = none();
  return call("aten::full", "",
              {integers(type.sizes), scalar(value), integer(int64_t(type.dtype)), no,
               device_argument(type.device), no},
              type);
}

Value* GraphBuilder::iota(int64_t count) {
  Value* const no = none();
  TensorInfo type{c10::kLong, info_of(source_->output(0)).device, {count}, {1}};
  return call("aten::arange", "start_step",
              {integer(0), integer(count), integer(1), integer(int64_t(c10::kLong)), no,
               device_argument(type.device), no},
              type);
}

Value* GraphBuilder::view(Value* value, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          int64_t offset) {
  TensorInfo type = info_of(value);
  type.sizes = sizes.vec();
  type.strides = strides.vec();
  Value* base = value;
  if (value->node()->kind() == c10::aten::as_strided) {
    base = value->node()->input(0);
    offset += constant_value(value->node()->input(3))->toInt();
  } else if (value->node()->kind() == c10::prim::Param) {
    if (value->offset() < input_offsets_.size())
      offset += input_offsets_[value->offset()];
    else
      base = clone(value, info_of(value));
  }
  return call("aten::as_strided", "", {base, integers(sizes), integers(strides), integer(offset)},
              type);
}

Value* GraphBuilder::unsqueeze(Value* value, c10::IntArrayRef positions) {
  const TensorInfo info = info_of(value);
  std::vector<int64_t> sizes, strides;
  size_t next = 0;
  for (size_t i = 0; i < info.sizes.size() + positions.size(); ++i) {
    const bool added = std::find(positions.begin(), positions.end(), int64_t(i)) != positions.end();
    sizes.push_back(added ? 1 : info.sizes[next]);
    strides.push_back(added ? 1 : info.strides[next]);
    next += !added;
  }
  return view(value, sizes, strides);
}

Value* GraphBuilder::expand(Value* value, c10::IntArrayRef sizes) {
  const TensorInfo info = info_of(value);
  if (sizes == c10::IntArrayRef(info.sizes)) return value;
  std::vector<int64_t> strides(sizes.size(), 0);
  const size_t shift = sizes.size() - info.sizes.size();
  for (size_t i = 0; i < info.sizes.size(); ++i)
    if (info.sizes[i] == sizes[shift + i]) strides[shift + i] = info.strides[i];
  return view(value, sizes, strides);
}

Value* GraphBuilder::reduce(const char* name, const char* overload, Value* value,
                            c10::IntArrayRef dims, bool keepdim, c10::ScalarType dtype,
                            c10::ArrayRef<Value*> others) {
  // To ATen, no dimensions are all of them.
  if (dims.empty() && info_of(value).dims() > 0) return to(value, dtype);
  const TensorInfo info = info_of(value);
  TensorInfo type{dtype, info.device, {}, {}};
  for (int64_t i = 0; i < info.dims(); ++i) {
    const bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (!reduced)
      type.sizes.push_back(info.sizes[size_t(i)]);
    else if (keepdim)
      type.sizes.push_back(1);
  }
  type.strides = contiguous_strides(type.sizes);
  std::vector<Value*> inputs{value, integers(dims), boolean(keepdim)};
  inputs.insert(inputs.end(), others.begin(), others.end());
  return call(name, overload, inputs, type);
}

Value* GraphBuilder::cat(c10::ArrayRef<Value*> values, int64_t dim, const TensorInfo& type) {
  return call("aten::cat", "", {list(values), integer(dim)}, type);
}

}  // namespace torch_lazy
