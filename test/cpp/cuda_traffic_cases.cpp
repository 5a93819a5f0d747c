#include "cuda_traffic_cases.h"

#include <utility>

#include "adam_step.h"

namespace torch_lazy::tests {
namespace {

using Handles = TapeBuilder::Handles;
using Record = std::function<Handles(TapeBuilder&)>;
using Bounds = TrafficBounds;

// Of rows that begin at no multiple of 16 bytes, and differently in every tensor.
constexpr Bounds kUnaligned{.loads = 1.25, .stores = 1.25};
// Every other element is in sectors that are needed whole.
constexpr Bounds kSparse{.loads = 1.55, .wide = false};
// The weights are read for each row: 8 bytes an element, of which a multiprocessor's own cache
// gives 128 a cycle where device memory gives 14. Registers for them would cost blocks that wait
// for memory.
constexpr Bounds kWeighted{.read = 3.0};
// As above, in floats beside rows of bfloat16.
constexpr Bounds kWeightedHalf{.read = 5.0};
// What each thread, or each row, reads alike: memory sees it once.
constexpr Bounds kShared{.read = 2.0};
// Of a row of floats, and of two, a block has place for 80,000 columns, and for 36,000: what is
// longer is read by each sweep.
constexpr Bounds kPartlyHeld{.read = 1.75};
// Every thread reads its row's target. What targets count for is made before, the loss of all rows
// behind.
constexpr Bounds kLoss{.read = 3.0, .launches = 3};
// Columns are summed in chunks.
constexpr Bounds kNormBackward{.read = 2.0, .launches = 5};
// A lane has 8 bytes of a row of 64 floats.
constexpr Bounds kShortRows{.wide = false};
// A thread an element of a warp's row.
constexpr Bounds kNarrow{.wide = false};

Handle sum(TapeBuilder& w, const Handle& x, int64_t dim, bool keep = false) {
  return w.call("aten::sum", "dim_IntList", {x, std::vector<int64_t>{dim}, keep, kNone})[0];
}
Handle mul(TapeBuilder& w, const Handle& x, const Handle& y) {
  return w.call("aten::mul", "Tensor", {x, y})[0];
}
Handle contiguous(TapeBuilder& w, const Handle& x) {
  return w.call("aten::clone", "", {x, int64_t(at::MemoryFormat::Contiguous)})[0];
}
Handle cast(TapeBuilder& w, const Handle& x, c10::ScalarType type) {
  return w.call("aten::_to_copy", "", {x, type, kNone, kNone, kNone, false, kNone})[0];
}

// gelu(x * y + 1)
Handles chain(TapeBuilder& w, const at::Tensor& x, const at::Tensor& y) {
  const Handle product = mul(w, w.input(x), w.input(y));
  const Handle added = w.call("aten::add", "Tensor", {product, number(1.0), 1})[0];
  return w.call("aten::gelu", "", {added, "none"});
}

Record chain_of(std::vector<int64_t> sizes, c10::ScalarType type = at::kFloat) {
  return [=](TapeBuilder& w) {
    return chain(w, at::randn(sizes, at::kFloat).to(type), at::randn(sizes, at::kFloat).to(type));
  };
}

void add_pointwise(std::vector<TrafficCase>& cases) {
  cases.push_back({"pointwise float", chain_of({256, 512})});
  cases.push_back({"pointwise bfloat16", chain_of({256, 512}, at::kBFloat16)});
  cases.push_back({"pointwise half", chain_of({256, 512}, at::kHalf)});
  cases.push_back({"pointwise bfloat16 to float8", [](TapeBuilder& w) {
                     const Handle x = w.input(at::randn({256, 512}).to(at::kBFloat16));
                     const Handle scaled = w.call("aten::mul", "Tensor", {x, number(4.0)})[0];
                     return Handles{cast(w, scaled, at::kFloat8_e4m3fn)};
                   }});
  cases.push_back({"pointwise float8 to bfloat16", [](TapeBuilder& w) {
                     const Handle x = w.input(at::randn({256, 512}).to(at::kFloat8_e4m3fn));
                     const Handle read = cast(w, x, at::kBFloat16);
                     return w.call("aten::mul", "Tensor", {read, number(4.0)});
                   }});
  cases.push_back({"pointwise odd sizes", chain_of({253, 509})});
  cases.push_back({"pointwise odd sizes bfloat16", chain_of({253, 509}, at::kBFloat16)});
  cases.push_back({"pointwise with a row",
                   [](TapeBuilder& w) {
                     return chain(w, at::randn({256, 512}), at::randn({512}));
                   },
                   kShared});
  cases.push_back({"pointwise with a column",
                   [](TapeBuilder& w) {
                     return chain(w, at::randn({256, 512}), at::randn({256, 1}));
                   },
                   kShared});
  cases.push_back({"pointwise odd rows of a larger tensor",
                   [](TapeBuilder& w) {
                     const at::Tensor x = at::randn({256, 515});
                     return chain(w, x.narrow(1, 1, 509), at::randn({256, 509}));
                   },
                   kUnaligned});
  cases.push_back(
      {"pointwise every other column",
       [](TapeBuilder& w) {
         return chain(w, at::randn({256, 1024}).slice(1, 0, 1024, 2), at::randn({256, 512}));
       },
       kSparse});
}

Record softmax_of(int64_t rows, int64_t columns, c10::ScalarType type = at::kFloat) {
  return [=](TapeBuilder& w) {
    return w.call("aten::_softmax", "", {w.input(at::randn({rows, columns}).to(type)), -1, false});
  };
}

Record softmax_backward_of(int64_t rows, int64_t columns) {
  return [=](TapeBuilder& w) {
    const Handle gradient = w.input(at::randn({rows, columns}));
    const Handle result = w.input(at::randn({rows, columns}).softmax(1));
    return w.call("aten::_softmax_backward_data", "", {gradient, result, -1, at::kFloat});
  };
}

// The loss of each row, or the gradient of the logits by their mean.
Record cross_entropy_of(int64_t rows, int64_t columns, bool backward) {
  return [=](TapeBuilder& w) {
    const Handle x = w.input(at::randn({rows, columns}));
    const Handle target = w.input(at::randint(columns, {rows}, at::kLong));
    const Handle scores = w.call("aten::_log_softmax", "", {x, -1, false})[0];
    const Handles loss = w.call("aten::nll_loss_forward", "", {scores, target, kNone, 1, -100});
    if (!backward) return Handles{loss[0]};
    const Handle one = w.input(at::ones({}));
    const Handle gradient =
        w.call("aten::nll_loss_backward", "", {one, scores, target, kNone, 1, -100, loss[1]})[0];
    return Handles{loss[0], w.call("aten::_log_softmax_backward_data", "",
                                   {gradient, scores, -1, at::kFloat})[0]};
  };
}

void add_softmax(std::vector<TrafficCase>& cases) {
  const auto named = [](const char* what, int64_t columns) {
    return std::string(what) + " of " + std::to_string(columns);
  };
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{256, 128},
                                      {128, 1000},
                                      {128, 1001},
                                      {16, 4096},
                                      {16, 20000},
                                      {16, 50257},
                                      {16, 65536}}) {
    cases.push_back({named("softmax", columns), softmax_of(rows, columns)});
    cases.push_back({named("softmax backward", columns), softmax_backward_of(rows, columns),
                     columns > 36000 ? kPartlyHeld : Bounds{}});
    cases.push_back(
        {named("cross entropy", columns), cross_entropy_of(rows, columns, false), kLoss});
    cases.push_back({named("cross entropy and gradient", columns),
                     cross_entropy_of(rows, columns, true), kLoss});
  }
  for (const int64_t columns : {1000, 20000, 65536})
    cases.push_back({named("softmax bfloat16", columns), softmax_of(16, columns, at::kBFloat16)});
  cases.push_back({"softmax of 128256", softmax_of(16, 128256), kPartlyHeld});
}

Record layer_norm_of(int64_t rows, int64_t columns, bool backward,
                     c10::ScalarType type = at::kFloat) {
  return [=](TapeBuilder& w) {
    const std::vector<int64_t> shape{columns};
    const Handle x = w.input(at::randn({rows, columns}).to(type));
    const Handle weight = w.input(at::randn({columns}).to(type));
    const Handle bias = w.input(at::randn({columns}).to(type));
    const Handles made = w.call("aten::native_layer_norm", "", {x, shape, weight, bias, 1e-5});
    if (!backward) return made;
    const Handle gradient = w.input(at::randn({rows, columns}).to(type));
    return w.call(
        "aten::native_layer_norm_backward", "",
        {gradient, x, shape, made[1], made[2], weight, bias, std::vector<bool>{true, true, true}});
  };
}

// x / sqrt(mean(x * x) + eps) * weight, and its gradients.
Record rms_norm_of(int64_t rows, int64_t columns, bool backward) {
  return [=](TapeBuilder& w) {
    const Handle x = w.input(at::randn({rows, columns})), weight = w.input(at::randn({columns}));
    const Handle mean =
        w.call("aten::mean", "dim", {mul(w, x, x), std::vector<int64_t>{-1}, true, kNone})[0];
    const Handle shifted = w.call("aten::add", "Tensor", {mean, number(1e-6), 1})[0];
    const Handle scale = w.call("aten::rsqrt", "", {shifted})[0];
    const Handle normal = mul(w, x, scale);
    if (!backward) return Handles{mul(w, normal, weight)};
    const Handle gradient = w.input(at::randn({rows, columns}));
    const Handle of_weight = sum(w, mul(w, gradient, normal), 0);
    const Handle of_normal = mul(w, gradient, weight);
    const Handle dot = w.call(
        "aten::mean", "dim", {mul(w, of_normal, normal), std::vector<int64_t>{-1}, true, kNone})[0];
    const Handle centered = w.call("aten::sub", "Tensor", {of_normal, mul(w, normal, dot), 1})[0];
    return Handles{of_weight, mul(w, centered, scale)};  // in the order in which they are made
  };
}

void add_norms(std::vector<TrafficCase>& cases) {
  cases.push_back({"layer norm", layer_norm_of(128, 768, false), kWeighted});
  cases.push_back(
      {"layer norm bfloat16", layer_norm_of(128, 768, false, at::kBFloat16), kWeightedHalf});
  cases.push_back({"layer norm backward", layer_norm_of(128, 768, true), kNormBackward});
  cases.push_back({"layer norm backward of 4096", layer_norm_of(64, 4096, true), kNormBackward});
  cases.push_back({"rms norm", rms_norm_of(128, 768, false), kWeighted});
  cases.push_back({"rms norm backward", rms_norm_of(128, 768, true), kNormBackward});
}

Record sum_of(std::vector<int64_t> sizes, int64_t dim, c10::ScalarType type = at::kFloat) {
  return [=](TapeBuilder& w) { return Handles{sum(w, w.input(at::randn(sizes).to(type)), dim)}; };
}

// sum(a * b + c * d)
Record sum_of_products(int64_t rows, int64_t columns, c10::ScalarType type) {
  return [=](TapeBuilder& w) {
    const auto input = [&] { return w.input(at::randn({rows, columns}).to(type)); };
    const Handle first = mul(w, input(), input()), second = mul(w, input(), input());
    return Handles{sum(w, w.call("aten::add", "Tensor", {first, second, 1})[0], 1)};
  };
}

void add_sums(std::vector<TrafficCase>& cases) {
  for (const c10::ScalarType type : {at::kFloat, at::kDouble})
    cases.push_back({std::string("row sums of products ") + c10::toString(type),
                     sum_of_products(64, 4096, type)});
  cases.push_back({"row sum", sum_of({128, 1000}, 1)});
  cases.push_back({"sums of few rows", sum_of({3, 70001}, 1), kUnaligned});
  cases.push_back({"sum of all", [](TapeBuilder& w) {
                     return w.call("aten::sum", "", {w.input(at::randn({512, 256})), kNone});
                   }});
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{4096, 32}, {4096, 64}, {512, 256}, {512, 1000}, {64, 8192}})
    cases.push_back(
        {"column sum of " + std::to_string(columns), sum_of({rows, columns}, 0), kNarrow});
  cases.push_back({"column sum of 64 bfloat16", sum_of({4096, 64}, 0, at::kBFloat16), kNarrow});
  cases.push_back({"column sum of 1024 bfloat16", sum_of({512, 1024}, 0, at::kBFloat16), kNarrow});
}

void add_transposes(std::vector<TrafficCase>& cases) {
  cases.push_back({"transpose and add",
                   [](TapeBuilder& w) {
                     const Handle x = w.input(at::randn({256, 256}));
                     const Handle y = w.input(at::randn({256, 256}));
                     return w.call("aten::add", "Tensor", {y, w.call("aten::t", "", {x})[0], 1});
                   },
                   kNarrow});
  for (const c10::ScalarType type : {at::kFloat, at::kBFloat16})
    cases.push_back({std::string("transposes of a batch ") + c10::toString(type),
                     [=](TapeBuilder& w) {
                       const Handle x = w.input(at::randn({4, 96, 160}).to(type));
                       const Handle t = w.call("aten::transpose", "int", {x, 1, 2})[0];
                       return Handles{contiguous(w, t)};
                     },
                     kNarrow});
  cases.push_back({"transposes by large squares",
                   [](TapeBuilder& w) {
                     const Handle x = w.input(at::randn({70, 248, 200}));
                     const Handle t = w.call("aten::transpose", "int", {x, 1, 2})[0];
                     return Handles{contiguous(w, t)};
                   },
                   kNarrow});
  // Rows of 64 stay whole.
  cases.push_back({"heads of attention",
                   [](TapeBuilder& w) {
                     const Handle x = w.input(at::randn({2, 64, 8, 64}));
                     const Handle t = w.call("aten::transpose", "int", {x, 1, 2})[0];
                     return Handles{contiguous(w, t)};
                   },
                   kShortRows});
}

void add_gathers(std::vector<TrafficCase>& cases) {
  cases.push_back({"embedding",
                   [](TapeBuilder& w) {
                     const Handle weight = w.input(at::randn({1000, 256}));
                     const Handle index = w.input(at::randperm(1000, at::kLong).slice(0, 0, 500));
                     return w.call("aten::embedding", "", {weight, index, -1, false, false});
                   },
                   kShared});
}

void add_optimizers(std::vector<TrafficCase>& cases) {
  cases.push_back({"Adam over 100 tensors",
                   [](TapeBuilder& w) {
                     for (int i = 0; i < 100; ++i) step_of_adam(w, i % 4 == 0 ? 3072 : 768);
                     return Handles{};
                   },
                   {.launches = 4}});
}

}  // namespace

const std::vector<TrafficCase>& traffic_cases() {
  static const std::vector<TrafficCase> kCases = [] {
    std::vector<TrafficCase> cases;
    add_pointwise(cases);
    add_softmax(cases);
    add_norms(cases);
    add_sums(cases);
    add_transposes(cases);
    add_gathers(cases);
    add_optimizers(cases);
    return cases;
  }();
  return kCases;
}

}  // namespace torch_lazy::tests
