// Adds nodes to a graph, each with a complete type, the source line and the origin of what it
// stands for.
#pragma once

#include <ATen/core/Scalar.h>
#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace torch_lazy {

// Integer attribute (`attr::origin`): the operation of the tape that a node stands for or serves.
extern const c10::Symbol kOriginAttribute;
// Integer attribute (`attr::library`) of nodes that no rule takes apart and no kernel computes,
// although they could.
extern const c10::Symbol kLibraryAttribute;
// Integer attribute (`attr::kernel`) of scans that kernels of the backend compute: not every
// backend's could, and others are library calls (passes/scan_in_kernels.h).
extern const c10::Symbol kKernelAttribute;

// What the type of a tensor value says.
struct TensorInfo {
  c10::ScalarType dtype = c10::ScalarType::Float;
  c10::Device device = c10::kCPU;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  int64_t dims() const { return int64_t(sizes.size()); }
  int64_t elements() const;
  bool same_layout(const TensorInfo& other) const {
    return sizes == other.sizes && strides == other.strides;
  }
  c10::TensorTypePtr type() const;
};

// Of a value with a complete type; raises for others, naming the value.
TensorInfo info_of(const torch::jit::Value* value);
// False for None, undefined tensors, numbers and lists.
bool has_complete_type(const torch::jit::Value* value);

// Of a value in the functional form: whether it is seen in the memory of another, and whether a
// node made it, in memory of its own.
bool is_view(const torch::jit::Value* value);
bool is_made(const torch::jit::Value* value);

std::vector<int64_t> contiguous_strides(c10::IntArrayRef sizes);
std::vector<int64_t> broadcast_sizes(c10::IntArrayRef a, c10::IntArrayRef b);
// Of a result that an operator makes from these operands by going over their elements: the layout
// of the first operand that has the result's sizes and is dense, else contiguous.
std::vector<int64_t> pointwise_strides(c10::IntArrayRef sizes,
                                       c10::ArrayRef<const TensorInfo*> operands);

// The value of a constant, list of constants or ScalarImplicit of a constant; nullopt for others.
std::optional<c10::IValue> constant_value(const torch::jit::Value* value);
// The number in a constant that is a number or a tensor without dimensions; nullopt for others.
std::optional<at::Scalar> constant_number(const torch::jit::Value* value);
// A tensor constant that stands for a Python number: it yields to other operands' dtypes.
bool is_wrapped_number(const torch::jit::Value* value);

// The name of `from`, where it has one, goes to `to`, where that has none.
void move_name(torch::jit::Value* from, torch::jit::Value* to);

// Constants are at the head of the graph, made once for many arguments each (constant_uses.h). Not
// for graphs with blocks.
class GraphBuilder {
 public:
  using Value = torch::jit::Value;
  using Node = torch::jit::Node;

  // `input_offsets`: the storage offset, in elements, of each graph input; without them, views of
  // inputs are taken of clones. Both must outlive the builder.
  explicit GraphBuilder(torch::jit::Graph& graph, c10::IntArrayRef input_offsets = {});

  torch::jit::Graph& graph() { return graph_; }

  // New nodes go before `node` and carry its source line and origin. For few at each place: after
  // about twenty TorchScript renumbers all nodes.
  void insert_before(Node* node);
  // New nodes go where they went, but carry the source line and origin of `node`.
  void stand_for(Node* node);
  // New nodes go to the graph's end and carry the source line and origin of `node`.
  void append_for(Node* node);
  // Nodes made since then, constants not among them.
  const std::vector<Node*>& inserted() const { return inserted_; }

  // Brings the constants, the last of which is first until then, into the order in which they were
  // made. Once, when no more are made and none has been destroyed.
  void order_constants();

  // ---- Constants ----
  Value* none();
  // What an operator that makes tensors is told of their device: nothing on the CPU.
  Value* device_argument(c10::Device device);
  Value* undefined();  // as an argument
  Value* boolean(bool value);
  Value* integer(int64_t value);
  Value* real(double value);
  Value* string(const std::string& value);
  Value* integers(c10::IntArrayRef values);
  // As a Scalar argument: an integer or a real.
  Value* scalar(const at::Scalar& value);
  // A tensor without dimensions.
  Value* number(const at::Scalar& value, c10::ScalarType dtype);

  // ---- Nodes ----
  // `overload` names the operator exactly; the node has one output of the given type.
  Value* call(const char* name, const char* overload, c10::ArrayRef<Value*> inputs,
              const TensorInfo& type);
  // The operator of another node with one output.
  Value* call_like(const Node* node, c10::ArrayRef<Value*> inputs, const TensorInfo& type);
  Value* list(c10::ArrayRef<Value*> tensors);

  // A pointwise operator: sizes broadcast over `operands`, which come before `others`.
  Value* pointwise(const char* name, const char* overload, c10::ArrayRef<Value*> operands,
                   c10::ScalarType dtype, c10::ArrayRef<Value*> others = {});

  // The value itself where it has the dtype.
  Value* to(Value* value, c10::ScalarType dtype);
  // A copy in the layout of `type`, which has the value's sizes and dtype.
  Value* clone(Value* value, const TensorInfo& type);
  Value* full(const at::Scalar& value, const TensorInfo& type);
  // 0, 1, ..., count - 1 as kLong.
  Value* iota(int64_t count);
  // Strides and offset are relative to the value's first element.
  Value* view(Value* value, c10::IntArrayRef sizes, c10::IntArrayRef strides, int64_t offset = 0);
  // The value with dimensions of size 1 inserted before the dimensions `positions` of the result.
  Value* unsqueeze(Value* value, c10::IntArrayRef positions);
  // As Tensor.expand.
  Value* expand(Value* value, c10::IntArrayRef sizes);
  // `dims` are not negative. Of `name`(value, dims, keepdim).
  Value* reduce(const char* name, const char* overload, Value* value, c10::IntArrayRef dims,
                bool keepdim, c10::ScalarType dtype, c10::ArrayRef<Value*> others = {});
  Value* cat(c10::ArrayRef<Value*> values, int64_t dim, const TensorInfo& type);

 private:
  struct Kind {
    c10::Symbol symbol;
    // Whether TorchScript would find another overload by the inputs.
    bool needs_overload;
  };

  void make_for(Node* node, Node* next);
  Node* insert(Node* node);
  const Kind& kind_of(const char* name, const char* overload, Node* sample);
  Value* constant(const std::string& key, const c10::IValue& value);

  torch::jit::Graph& graph_;
  c10::IntArrayRef input_offsets_;
  std::unordered_map<std::string, Value*> constants_;
  std::unordered_map<std::string, Kind> kinds_;
  std::vector<Node*> made_constants_;
  Node* source_ = nullptr;  // of lines and origins
  Node* next_ = nullptr;    // new nodes go before it
  std::optional<int64_t> origin_;
  std::vector<Node*> inserted_;
};

}  // namespace torch_lazy
