#include "passes/decompose_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "passes/decompose_rules.h"

namespace torch_lazy {
namespace {

using torch::jit::Graph;
using torch::jit::Node;

// What the scores may take that are in memory at a time, which flash attention keeps less of and a
// gradient has three times: so much, or twice what the queries take, half as much as the widest
// layer of a transformer does. Where all of them take more, so many pieces of the heads or batches
// follow each other, each of which is further operations to compile.
constexpr int64_t kMostScoreBytes = int64_t{16} << 20;
constexpr int64_t kMostOfQueries = 2;
constexpr int64_t kMostPiecesOfKeys = 8;
// Shorter matrices are bound by memory, as those of a single query.
constexpr int64_t kLeastSize = 8;

const double kMasked = -std::numeric_limits<double>::infinity();

// Of [batch, heads, rows, columns]: those of some batches or heads, `dim`, from `begin` on.
struct Piece {
  size_t dim;
  int64_t begin, size;
};

Term piece_of(Term x, const Piece& piece) {
  TensorInfo info = x.info();
  const int64_t offset = piece.begin * info.strides[piece.dim];
  if (info.sizes[piece.dim] == piece.size) return x;
  info.sizes[piece.dim] = piece.size;
  return view(x, info.sizes, info.strides, offset);
}

// As [batch * heads, rows, columns], rows one after the other.
Term matrices(Term x) {
  TensorInfo info = x.info();
  const std::vector<int64_t> strides = contiguous_strides(info.sizes);
  if (info.strides != strides) {
    info.strides = strides;
    x.value = x.builder->clone(x.value, info);
  }
  const int64_t rows = info.sizes[2], columns = info.sizes[3];
  return view(x, {info.sizes[0] * info.sizes[1], rows, columns}, {rows * columns, columns, 1});
}

Term transposed(Term matrices) {
  const TensorInfo info = matrices.info();
  return view(matrices, {info.sizes[0], info.sizes[2], info.sizes[1]},
              {info.strides[0], info.strides[2], info.strides[1]});
}

// Queries, keys and values times features, each [batch, heads, ..., features].
struct Attention {
  Term query, key, value;
  std::optional<Term> mask;  // added to scores
  std::optional<Term> kept;  // bool: others are masked out
  double scale;

  Attention piece(const Piece& piece) const {
    Attention of_piece = *this;
    for (Term* const x : {&of_piece.query, &of_piece.key, &of_piece.value})
      *x = piece_of(*x, piece);
    if (mask) of_piece.mask = piece_of(*mask, piece);
    return of_piece;
  }

  // Of matrices(), as [batch, heads, rows, columns].
  Term product(Term a, Term b) const {
    TensorInfo info = a.info();
    info.sizes[2] = b.info().sizes[2];
    info.strides = contiguous_strides(info.sizes);
    const Term product{a.builder, a.builder->call("aten::bmm", "", {a.value, b.value}, info)};
    const TensorInfo of_query = query.info();
    const std::vector<int64_t> sizes = {of_query.sizes[0], of_query.sizes[1], info.sizes[1],
                                        info.sizes[2]};
    return view(product, sizes, contiguous_strides(sizes));
  }

  // [batch, heads, queries, keys]
  Term scores() const {
    Term scores = product(matrices(query), transposed(matrices(key))) * scale;
    if (mask) scores = scores + *mask;
    return kept ? where(*kept, scores, scores.number(kMasked)) : scores;
  }
};

// The heads or the batches in as few pieces as have few scores; none where those are too many.
std::vector<Piece> pieces_of(const TensorInfo& query, int64_t keys, int64_t least_work) {
  const int64_t batches = query.sizes[0], heads = query.sizes[1];
  const int64_t queries = query.sizes[2], features = query.sizes[3];
  const size_t dim = heads > batches ? 1 : 0;
  const int64_t most =
      std::max(kMostScoreBytes / int64_t{sizeof(float)}, kMostOfQueries * query.elements());
  const int64_t of_one = batches * heads / query.sizes[dim] * queries * keys;
  if (of_one > most || std::min({queries, keys, features}) < kLeastSize) return {};
  const int64_t size = std::min(most / of_one, query.sizes[dim]);
  const int64_t count = (query.sizes[dim] + size - 1) / size;
  if (count > kMostPiecesOfKeys || of_one * size * features < least_work) return {};
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = query.sizes[dim] * i / count, end = query.sizes[dim] * (i + 1) / count;
    pieces.push_back({dim, begin, end - begin});
  }
  return pieces;
}

struct Divided {
  Attention all;
  std::vector<Piece> pieces;
};

// Of a forward call, whose tensors `first` is the first of, or of a backward one; its numbers are
// those from `options` on. None where it is to stay whole.
std::optional<Divided> attention_of(Decomposition& d, size_t first, size_t options,
                                    int64_t least_work) {
  enum Option : size_t { kDropout, kCausal, kMask, kScale };
  Attention attention{d.tensor(first), d.tensor(first + 1), d.tensor(first + 2), {}, {}, 1};
  const TensorInfo query = attention.query.info(), key = attention.key.info(),
                   value = attention.value.info();
  for (const TensorInfo* const info : {&query, &key, &value})
    if (info->dtype != c10::kFloat || info->dims() != 4) return std::nullopt;
  if (key.sizes[0] != query.sizes[0] || key.sizes[1] != query.sizes[1] ||
      key.sizes[3] != query.sizes[3] || value.sizes != key.sizes || query.elements() == 0 ||
      key.elements() == 0 || !d.is(options + kDropout, 0))
    return std::nullopt;
  const int64_t queries = query.sizes[2], keys = key.sizes[2];
  std::vector<Piece> pieces = pieces_of(query, keys, least_work);
  if (pieces.empty()) return std::nullopt;
  if (d.given(options + kMask)) {
    const Term mask = d.tensor(options + kMask);
    if (mask.dtype() != c10::kFloat) return std::nullopt;
    const std::vector<int64_t> sizes = {query.sizes[0], query.sizes[1], queries, keys};
    attention.mask = Term{mask.builder, mask.builder->expand(mask.value, sizes)};
  }
  if (d.boolean(options + kCausal))
    attention.kept = compare("le", d.iota(keys), unsqueeze(d.iota(queries), {1}));
  attention.scale =
      d.given(options + kScale) ? d.real(options + kScale) : 1 / std::sqrt(double(query.sizes[3]));
  // ATen scales what it has masked out.
  if (attention.kept && attention.scale <= 0) return std::nullopt;
  return Divided{attention, std::move(pieces)};
}

// A result of every piece.
class Joined {
 public:
  Joined(Decomposition& d, size_t index) : d_(d), index_(index) {}
  bool needed() const { return d_.needed(index_); }
  void add(Term of_piece) { values_.push_back(of_piece.value); }
  void finish(const std::vector<Piece>& pieces) {
    if (!needed()) return;
    Term all{&d_.builder(), values_.front()};
    if (pieces.size() > 1) {
      const int64_t dim = int64_t(pieces.front().dim);
      all.value = d_.builder().cat(values_, dim, d_.output(index_));
    }
    d_.finish(all, index_);
  }

 private:
  Decomposition& d_;
  const size_t index_;
  std::vector<torch::jit::Value*> values_;
};

// query, key, value, dropout_p, is_causal, attn_mask, scale: the result and the logarithms of the
// sums of exponentials. As in eager, both are 0 for a query of which all keys are masked out.
bool decompose_forward(Decomposition& d, int64_t least_work) {
  const std::optional<Divided> divided = attention_of(d, 0, 3, least_work);
  if (!divided) return false;
  Joined result(d, 0), logsumexp(d, 1);
  for (const Piece& piece : divided->pieces) {
    const Attention attention = divided->all.piece(piece);
    const Term scores = attention.scores();
    const Term greatest = amax(scores, {3});
    const Term shift = where(compare("eq", greatest, kMasked), greatest.number(0), greatest);
    const Term powers = exp(scores - shift);
    const Term total = sum(powers, {3});
    const Term divisor = where(compare("eq", total, 0), total.number(1), total);
    if (logsumexp.needed()) logsumexp.add(squeeze(shift + log(divisor), {3}));
    if (!result.needed()) continue;
    const Term values = attention.product(matrices(powers), matrices(attention.value));
    result.add(values * reciprocal(divisor));
  }
  result.finish(divided->pieces);
  logsumexp.finish(divided->pieces);
  return true;
}

// grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale: the
// gradients of query, key and value.
bool decompose_backward(Decomposition& d, int64_t least_work) {
  const std::optional<Divided> divided = attention_of(d, 1, 6, least_work);
  if (!divided) return false;
  Joined of_query(d, 0), of_key(d, 1), of_value(d, 2);
  for (const Piece& piece : divided->pieces) {
    const Attention attention = divided->all.piece(piece);
    const Term grad = piece_of(d.tensor(0), piece), result = piece_of(d.tensor(4), piece);
    const Term logsumexp = piece_of(unsqueeze(d.tensor(5), {3}), piece);
    const Term weights = exp(attention.scores() - logsumexp);
    const Term grads = matrices(grad);
    if (of_value.needed()) of_value.add(attention.product(transposed(matrices(weights)), grads));
    if (!of_query.needed() && !of_key.needed()) continue;
    const Term of_weights = attention.product(grads, transposed(matrices(attention.value)));
    const Term of_scores =
        matrices(weights * (of_weights - sum(grad * result, {3})) * attention.scale);
    if (of_query.needed()) of_query.add(attention.product(of_scores, matrices(attention.key)));
    if (of_key.needed())
      of_key.add(attention.product(transposed(of_scores), matrices(attention.query)));
  }
  for (Joined* const gradient : {&of_query, &of_key, &of_value}) gradient->finish(divided->pieces);
  return true;
}

Rule rule_of(const Node& node, int64_t least_work) {
  static const auto forward =
      c10::Symbol::fromQualString("aten::_scaled_dot_product_flash_attention_for_cpu");
  static const auto backward =
      c10::Symbol::fromQualString("aten::_scaled_dot_product_flash_attention_for_cpu_backward");
  if (node.kind() == forward)
    return [=](Decomposition& d) { return decompose_forward(d, least_work); };
  if (node.kind() == backward)
    return [=](Decomposition& d) { return decompose_backward(d, least_work); };
  return {};
}

}  // namespace

std::shared_ptr<Graph> decompose_attention(std::shared_ptr<Graph> graph,
                                           c10::IntArrayRef input_offsets, int64_t least_work) {
  return decompose_by([=](const Node& node) { return rule_of(node, least_work); }, std::move(graph),
                      input_offsets);
}

}  // namespace torch_lazy
