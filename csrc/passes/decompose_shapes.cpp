// Joining, padding, picking, and the gradients of views.

#include <algorithm>
#include <array>
#include <optional>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using torch::jit::Value;

int64_t wrap(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + rank : dim;
}

// ---- Joining ----

Term join(Decomposition& d, const std::vector<Value*>& values, int64_t dim) {
  const TensorInfo type = d.output();
  GraphBuilder& builder = d.builder();
  std::vector<Value*> cast;
  cast.reserve(values.size());
  for (Value* value : values) cast.push_back(builder.to(value, type.dtype));
  return {&builder, builder.cat(cast, dim, type)};
}

bool cat(Decomposition& d) {
  const int64_t rank = d.output().dims();
  std::vector<Value*> values;
  for (Value* value : d.list(0)) {
    // ATen leaves out empty tensors of one dimension, whatever the rank of the others.
    if (!has_complete_type(value)) return false;
    const TensorInfo info = info_of(value);
    if (info.dims() == 1 && info.elements() == 0) continue;
    values.push_back(value);
  }
  if (values.empty()) return d.finish(d.full(0, d.output()));
  return d.finish(join(d, values, wrap(d.integer(1), rank)));
}

bool stack(Decomposition& d) {
  const int64_t dim = wrap(d.integer(1), d.output().dims());
  std::vector<Value*> values;
  for (Value* value : d.list(0)) values.push_back(d.builder().unsqueeze(value, {dim}));
  return d.finish(join(d, values, dim));
}

// ---- Rolling ----

// A kernel reads as many pieces for each dimension, of each of the others.
constexpr size_t kMostRolled = 2;

struct Roll {
  size_t dim;
  int64_t shift;  // from 1 to less than the size
};

// Of the elements of `x` that lie at the offset, of `type`.
Value* rolled(GraphBuilder& builder, Value* x, const TensorInfo& type, int64_t offset,
              c10::ArrayRef<Roll> rolls) {
  if (rolls.empty()) return builder.view(x, type.sizes, type.strides, offset);
  const size_t dim = rolls.front().dim;
  const int64_t shift = rolls.front().shift;
  const auto part = [&](int64_t begin, int64_t size) {
    TensorInfo of_part = type;
    of_part.sizes[dim] = size;
    return rolled(builder, x, of_part, offset + begin * type.strides[dim], rolls.slice(1));
  };
  const int64_t first = type.sizes[dim] - shift;
  TensorInfo whole = type;
  whole.strides = contiguous_strides(whole.sizes);
  return builder.cat({part(first, shift), part(0, first)}, int64_t(dim), whole);
}

bool roll(Decomposition& d) {
  const TensorInfo input = d.tensor(0).info();
  const std::vector<int64_t> shifts = d.integers(1), dims = d.integers(2);
  if (input.elements() == 0) return false;
  TensorInfo type = input;
  if (dims.empty()) {  // of the elements in their order
    if (input.strides != contiguous_strides(input.sizes)) return false;
    type.sizes = {input.elements()};
    type.strides = {1};
  }
  std::vector<int64_t> by_dim(type.sizes.size());
  for (size_t i = 0; i < shifts.size(); ++i)
    by_dim[dims.empty() ? 0 : size_t(wrap(dims[i], input.dims()))] += shifts[i];
  std::vector<Roll> rolls;
  for (size_t dim = 0; dim < by_dim.size(); ++dim) {
    const int64_t size = type.sizes[dim], shift = (by_dim[dim] % size + size) % size;
    if (shift != 0) rolls.push_back({dim, shift});
  }
  if (rolls.size() > kMostRolled) return false;
  GraphBuilder& builder = d.builder();
  Value* const result = rolled(builder, d.tensor(0).value, type, 0, rolls);
  const std::vector<int64_t> strides = contiguous_strides(input.sizes);
  return d.finish({&builder, dims.empty() ? builder.view(result, input.sizes, strides) : result});
}

// ---- Repeating ----

// As many as a kernel reads pieces.
constexpr int64_t kMostRepeated = 4;

// What has one element along a dimension is expanded; along one other dimension whole copies follow
// one another.
bool repeat(Decomposition& d) {
  const TensorInfo type = d.output();
  const std::vector<int64_t> repeats = d.integers(1);
  TensorInfo part = d.tensor(0).info();
  if (type.elements() == 0) return false;
  const size_t missing = repeats.size() - part.sizes.size();
  part.sizes.insert(part.sizes.begin(), missing, 1);
  part.strides.insert(part.strides.begin(), missing, 0);
  std::optional<size_t> along;
  for (size_t dim = 0; dim < repeats.size(); ++dim) {
    if (repeats[dim] == 1) continue;
    if (part.sizes[dim] == 1) {
      part.sizes[dim] = repeats[dim];
      part.strides[dim] = 0;
    } else if (along || repeats[dim] > kMostRepeated) {
      return false;
    } else {
      along = dim;
    }
  }
  GraphBuilder& builder = d.builder();
  Value* const one = builder.view(d.tensor(0).value, part.sizes, part.strides);
  if (!along) return d.finish({&builder, one});
  const auto count = size_t(repeats[*along]);
  const std::vector<Value*> copies(count, one);
  return d.finish({&builder, builder.cat(copies, int64_t(*along), type)});
}

// ---- Padding ----

// `pad`: how much before and after, from the last dimension on; negative: cut off.
bool constant_pad(Decomposition& d) {
  const TensorInfo type = d.output();
  const std::vector<int64_t> pad = d.integers(1);
  const TensorInfo input = d.tensor(0).info();
  std::vector<int64_t> sizes = input.sizes;
  int64_t from = 0, to = 0;
  for (size_t i = 0; 2 * i < pad.size(); ++i) {
    const size_t dim = sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    from += std::max<int64_t>(-before, 0) * input.strides[dim];
    to += std::max<int64_t>(before, 0) * type.strides[dim];
    sizes[dim] += std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    if (sizes[dim] < 0) return false;
  }
  const Term filled = d.full(d.scalar(2), type);
  const Term source =
      sizes == input.sizes ? d.tensor(0) : view(d.tensor(0), sizes, input.strides, from);
  return d.finish(scatter_view(filled, source, sizes, type.strides, to));
}

// ---- Gradients of views ----

void add_view_backward_rules(RuleTable& table) {
  const auto scatter = [](Decomposition& d, const Term& grad, c10::IntArrayRef strides,
                          int64_t offset) {
    const Term zeros = d.full(0, d.output());
    return d.finish(scatter_view(zeros, grad, grad.info().sizes, strides, offset));
  };
  table["slice_backward"] = [=](Decomposition& d) {
    const TensorInfo type = d.output();
    const size_t dim = size_t(wrap(d.integer(2), type.dims()));
    const int64_t size = type.sizes[dim];
    int64_t start = d.integer(3);
    start = std::clamp<int64_t>(start < 0 ? start + size : start, 0, size);
    std::vector<int64_t> strides = type.strides;
    const int64_t offset = start * strides[dim];
    strides[dim] *= d.integer(5);
    return scatter(d, d.tensor(0), strides, offset);
  };
  table["select_backward"] = [=](Decomposition& d) {
    const TensorInfo type = d.output();
    const size_t dim = size_t(wrap(d.integer(2), type.dims()));
    const int64_t offset = wrap(d.integer(3), type.sizes[dim]) * type.strides[dim];
    // With all dimensions of the whole, as passes look for parts along one of them.
    return scatter(d, unsqueeze(d.tensor(0), {int64_t(dim)}), type.strides, offset);
  };
  table["diagonal_backward"] = [=](Decomposition& d) {
    const TensorInfo type = d.output();
    const int64_t first = wrap(d.integer(3), type.dims()), second = wrap(d.integer(4), type.dims());
    const int64_t shift = d.integer(2);
    std::vector<int64_t> strides = type.strides;
    const int64_t row = strides[size_t(first)], column = strides[size_t(second)];
    strides.erase(strides.begin() + std::max(first, second));
    strides.erase(strides.begin() + std::min(first, second));
    strides.push_back(row + column);
    return scatter(d, d.tensor(0), strides, shift >= 0 ? shift * column : -shift * row);
  };
}

// ---- Triangles ----

// `name`: the comparison of (column - row) with the diagonal where elements are kept.
Rule triangle(const char* name) {
  return [=](Decomposition& d) {
    const TensorInfo type = d.output();
    const Term x = d.operand(0, type.dtype);
    const int64_t rank = type.dims();
    const Term row = unsqueeze(d.iota(type.sizes[size_t(rank - 2)]), {1});
    const Term column = d.iota(type.sizes[size_t(rank - 1)]);
    return d.finish(where(compare(name, column - row, d.scalar(1)), x, x.number(0)));
  };
}

// ---- Diagonals ----

// Of the last two dimensions of a result: where row and column are equal.
Term on_diagonal(Decomposition& d) {
  const std::vector<int64_t> sizes = d.output().sizes;
  const Term row = unsqueeze(d.iota(sizes[sizes.size() - 2]), {1});
  return compare("eq", row, d.iota(sizes.back()));
}

bool eye(Decomposition& d) {
  return d.finish(on_diagonal(d).to(d.output().dtype));
}

// A range gathered by the classes is the classes, looked at.
bool one_hot(Decomposition& d) {
  GraphBuilder& builder = d.builder();
  const int64_t classes = d.integer(1);
  const Term all = d.iota(classes), x = d.tensor(0);
  TensorInfo looked_at = x.info();
  looked_at.sizes.push_back(1);
  looked_at.strides = contiguous_strides(looked_at.sizes);
  auto* const no = builder.boolean(false);
  const Term checked{
      &builder,
      builder.call("aten::embedding", "",
                   {unsqueeze(all, {1}).value, x.value, builder.integer(-1), no, no}, looked_at)};
  return d.finish(compare("eq", checked, all).to(at::kLong));
}

bool diag_embed(Decomposition& d) {
  const int64_t rank = d.output().dims();
  const bool main = d.integer(1) == 0 && wrap(d.integer(2), rank) == rank - 2 &&
                    wrap(d.integer(3), rank) == rank - 1;
  if (!main) return false;
  const Term x = d.tensor(0);
  return d.finish(where(on_diagonal(d), unsqueeze(x, {rank - 2}), x.number(0)));
}

// ---- Indices ----

// x[index], with one tensor of indices along one dimension: rows selected by the indices in their
// order, with the dimensions of the indices in its place. Negative ones count from the end; what is
// out of range then is so for index_select too, but where there is nothing to select.
bool index(Decomposition& d) {
  if (d.output().elements() == 0) return false;
  const std::vector<torch::jit::Value*> indices = d.list(1);
  const auto is_given = [](const torch::jit::Value* value) { return has_complete_type(value); };
  const auto first = std::ranges::find_if(indices, is_given);
  if (std::ranges::count_if(indices, is_given) != 1) return false;
  const Term x = d.tensor(0), given{&d.builder(), *first};
  if (given.dtype() != at::kLong && given.dtype() != at::kInt) return false;
  const int64_t dim = first - indices.begin();
  TensorInfo info = x.info();
  const Term wrapped = where(compare("lt", given, 0), given + info.sizes[size_t(dim)], given);
  if (wrapped.info().strides != contiguous_strides(wrapped.info().sizes)) return false;
  const int64_t count = wrapped.info().elements();
  info.sizes[size_t(dim)] = count;
  info.strides = contiguous_strides(info.sizes);
  const Term selected{
      &d.builder(),
      d.builder().call("aten::index_select", "",
                       {x.value, d.builder().integer(dim),
                        view(wrapped, std::array{count}, std::array{int64_t{1}}).value},
                       info)};
  const std::vector<int64_t> sizes = d.output().sizes;
  return d.finish(view(selected, sizes, contiguous_strides(sizes)));
}

// ---- Halves ----

struct Halves {
  Term first, second;

  Halves(Term x, int64_t dim) {
    TensorInfo info = x.info();
    int64_t& size = info.sizes[size_t(dim)];
    size /= 2;
    first = view(x, info.sizes, info.strides);
    second = view(x, info.sizes, info.strides, size * info.strides[size_t(dim)]);
  }
};

void add_glu_rules(RuleTable& table) {
  table["glu"] = [](Decomposition& d) {
    const Halves x(d.tensor(0), wrap(d.integer(1), d.output().dims()));
    return d.finish(x.first.to(d.compute()) * sigmoid(x.second.to(d.compute())));
  };
  table["glu_backward"] = [](Decomposition& d) {
    const int64_t dim = wrap(d.integer(2), d.output().dims());
    const Term grad = d.operand(0, d.compute());
    const Halves x(d.tensor(1), dim);
    const Term value = x.first.to(d.compute()), gate = sigmoid(x.second.to(d.compute()));
    const Term to_value = grad * gate, to_gate = grad * (1 - gate) * gate * value;
    return d.finish(join(d, {to_value.value, to_gate.value}, dim));
  };
}

}  // namespace

void add_shape_rules(RuleTable& table) {
  table["cat"] = cat;
  table["stack"] = stack;
  table["roll"] = roll;
  table["constant_pad_nd"] = constant_pad;
  table["tril"] = triangle("le");
  table["triu"] = triangle("ge");
  table["eye"] = table["eye.m"] = eye;
  table["diag_embed"] = diag_embed;
  table["one_hot_of_classes"] = one_hot;
  table["repeat"] = repeat;
  table["index.Tensor"] = index;
  add_view_backward_rules(table);
  add_glu_rules(table);
}

}  // namespace torch_lazy
