#include "passes/decompose_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;

// What the scores may take, which flash attention does not keep and a gradient has three times at
// once: so much, or four times what the queries take, as the widest layer of a transformer does.
constexpr int64_t kMostScoreBytes = int64_t{16} << 20;
constexpr int64_t kMostKeysOfFeature = 4;
// Fewer multiplications in a product are not worth more calls than one.
constexpr int64_t kLeastWork = int64_t{3} << 18;
// Shorter matrices are bound by memory, as those of a single query.
constexpr int64_t kLeastSize = 8;

const double kMasked = -std::numeric_limits<double>::infinity();

// Of every head: queries and keys times features. By position in the schema of a forward call, or,
// behind the gradient, of a backward one.
class Attention {
 public:
  Attention(Decomposition& d, size_t first)
      : d_(d),
        query_(d.tensor(first)),
        key_(d.tensor(first + 1)),
        value_(d.tensor(first + 2)),
        // behind them the result and its logsumexp, in a backward call
        options_(first == 0 ? 3 : 6) {}

  bool pays() {
    const TensorInfo query = query_.info(), key = key_.info(), value = value_.info();
    for (const TensorInfo* const info : {&query, &key, &value})
      if (info->dtype != c10::kFloat || info->dims() != 4) return false;
    if (given(kMask) && d_.tensor(options_ + kMask).dtype() != c10::kFloat) return false;
    const int64_t heads = query.sizes[0] * query.sizes[1];
    queries_ = query.sizes[2];
    keys_ = key.sizes[2];
    const int64_t features = query.sizes[3];
    const bool alike = key.sizes[0] == query.sizes[0] && key.sizes[1] == query.sizes[1] &&
                       key.sizes[3] == features && value.sizes == key.sizes;
    const int64_t scores = heads * queries_ * keys_;
    const bool are_few = scores * int64_t{sizeof(float)} <= kMostScoreBytes ||
                         keys_ <= kMostKeysOfFeature * features;
    return alike && d_.is_number(options_) && d_.is(options_, 0) &&
           std::min({queries_, keys_, features}) >= kLeastSize && scores * features >= kLeastWork &&
           are_few;
  }

  // [batch, heads, queries, keys]
  Term scores() {
    Term scores = product(matrices(query_), transposed(matrices(key_))) * scale();
    if (given(kMask)) scores = scores + d_.tensor(options_ + kMask);
    if (!d_.boolean(options_ + kCausal)) return scores;
    const Term query = unsqueeze(d_.iota(queries_), {1});
    return where(compare("le", d_.iota(keys_), query), scores, scores.number(kMasked));
  }

  double scale() {
    if (given(kScale)) return d_.real(options_ + kScale);
    return 1 / std::sqrt(double(query_.info().sizes[3]));
  }

  // Of the last two dimensions. Rows lie one after the other.
  Term matrices(Term x) {
    TensorInfo info = x.info();
    const std::vector<int64_t> strides = contiguous_strides(info.sizes);
    if (info.strides != strides) {
      info.strides = strides;
      x.value = d_.builder().clone(x.value, info);
    }
    const int64_t rows = info.sizes[2], columns = info.sizes[3];
    return view(x, {info.sizes[0] * info.sizes[1], rows, columns}, {rows * columns, columns, 1});
  }

  static Term transposed(Term matrices) {
    const TensorInfo info = matrices.info();
    return view(matrices, {info.sizes[0], info.sizes[2], info.sizes[1]},
                {info.strides[0], info.strides[2], info.strides[1]});
  }

  // With a dimension of batches and one of heads.
  Term product(Term a, Term b) {
    TensorInfo info = a.info();
    info.sizes[2] = b.info().sizes[2];
    info.strides = contiguous_strides(info.sizes);
    const Term product{&d_.builder(), d_.builder().call("aten::bmm", "", {a.value, b.value}, info)};
    const std::vector<int64_t>& of_query = query_.info().sizes;
    const std::vector<int64_t> sizes = {of_query[0], of_query[1], info.sizes[1], info.sizes[2]};
    return view(product, sizes, contiguous_strides(sizes));
  }

  Term query() const { return query_; }
  Term key() const { return key_; }
  Term value() const { return value_; }

 private:
  // After dropout's probability.
  enum Option : size_t { kCausal = 1, kMask, kScale };

  bool given(Option option) const { return d_.given(options_ + option); }

  Decomposition& d_;
  const Term query_, key_, value_;
  const size_t options_;
  int64_t queries_ = 0, keys_ = 0;
};

// query, key, value, dropout_p, is_causal, attn_mask, scale: the result and the logarithms of the
// sums of exponentials. As in eager, both are 0 for a query of which all keys are masked out.
bool attention(Decomposition& d) {
  Attention attention(d, 0);
  if (!attention.pays()) return false;
  const Term scores = attention.scores();
  const Term greatest = amax(scores, {3});
  const Term shift = where(compare("eq", greatest, kMasked), greatest.number(0), greatest);
  const Term powers = exp(scores - shift);
  const Term total = sum(powers, {3});
  const Term divisor = where(compare("eq", total, 0), total.number(1), total);
  if (d.needed(1)) d.finish(squeeze(shift + log(divisor), {3}), 1);
  if (!d.needed(0)) return true;
  const Term values =
      attention.product(attention.matrices(powers), attention.matrices(attention.value()));
  return d.finish(values * reciprocal(divisor));
}

// grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale: the
// gradients of query, key and value.
bool attention_backward(Decomposition& d) {
  Attention attention(d, 1);
  if (!attention.pays()) return false;
  const Term grad = d.tensor(0), result = d.tensor(4), logsumexp = unsqueeze(d.tensor(5), {3});
  const Term weights = exp(attention.scores() - logsumexp);
  const Term of_weights = attention.matrices(weights), of_grad = attention.matrices(grad);
  if (d.needed(2)) d.finish(attention.product(Attention::transposed(of_weights), of_grad), 2);
  if (!d.needed(0) && !d.needed(1)) return true;
  const Term grad_weights =
      attention.product(of_grad, Attention::transposed(attention.matrices(attention.value())));
  const Term grad_scores = weights * (grad_weights - sum(grad * result, {3})) * attention.scale();
  const Term of_scores = attention.matrices(grad_scores);
  if (d.needed(0)) d.finish(attention.product(of_scores, attention.matrices(attention.key())), 0);
  if (d.needed(1))
    d.finish(
        attention.product(Attention::transposed(of_scores), attention.matrices(attention.query())),
        1);
  return true;
}

Rule rule_of(const Node& node) {
  static const auto forward =
      c10::Symbol::fromQualString("aten::_scaled_dot_product_flash_attention_for_cpu");
  static const auto backward =
      c10::Symbol::fromQualString("aten::_scaled_dot_product_flash_attention_for_cpu_backward");
  if (node.kind() == forward) return attention;
  if (node.kind() == backward) return attention_backward;
  return {};
}

}  // namespace

std::shared_ptr<Graph> decompose_attention(std::shared_ptr<Graph> graph,
                                           c10::IntArrayRef input_offsets) {
  return decompose_by(rule_of, std::move(graph), input_offsets);
}

}  // namespace torch_lazy
