#include "passes/named_views.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace torch_lazy {
namespace {

// Builds the chain without steps that do nothing.
class Chain {
 public:
  explicit Chain(std::vector<int64_t> sizes) : first_(std::move(sizes)) {}

  const std::vector<int64_t>& sizes() const {
    return views_.empty() ? first_ : views_.back().sizes;
  }

  void permute(std::vector<int64_t> dims) {
    std::vector<int64_t> permuted;
    for (const int64_t dim : dims) permuted.push_back(sizes()[size_t(dim)]);
    if (!views_.empty() && views_.back().kind == NamedView::Kind::kPermute) {
      for (int64_t& dim : dims) dim = views_.back().arguments[size_t(dim)];
      views_.pop_back();
    }
    if (!std::is_sorted(dims.begin(), dims.end()))
      views_.push_back({NamedView::Kind::kPermute, std::move(dims), std::move(permuted)});
  }

  void reshape(const std::vector<int64_t>& sizes) {
    if (!views_.empty() && views_.back().kind == NamedView::Kind::kReshape) views_.pop_back();
    if (sizes != this->sizes()) views_.push_back({NamedView::Kind::kReshape, sizes, sizes});
  }

  void slice(size_t dim, int64_t start, int64_t count, int64_t step) {
    if (count == sizes()[dim]) return;
    std::vector<int64_t> sliced = sizes();
    sliced[dim] = count;
    views_.push_back({NamedView::Kind::kSlice,
                      {int64_t(dim), start, start + (count - 1) * step + 1, step},
                      std::move(sliced)});
  }

  void expand(const std::vector<int64_t>& sizes) {
    if (sizes != this->sizes()) views_.push_back({NamedView::Kind::kExpand, sizes, sizes});
  }

  std::vector<NamedView> take() { return std::move(views_); }

 private:
  std::vector<int64_t> first_;
  std::vector<NamedView> views_;
};

// A digit of an element's distance from the base's first: the base's memory as one long dimension
// is reshaped to these, the most significant first.
struct Digit {
  int64_t unit, size;
  int64_t start = 0, count = 1, step = 1;  // what the view takes of it
  bool used = false;
};

// Dimensions of more than one element, by falling stride.
std::vector<size_t> memory_order(const Layout& layout) {
  std::vector<size_t> order;
  for (size_t i = 0; i < layout.sizes.size(); ++i)
    if (layout.sizes[i] > 1 && layout.strides[i] != 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return layout.strides[a] > layout.strides[b]; });
  return order;
}

// Cuts memory where dimensions of the base begin and end.
std::vector<int64_t> cuts_of(const Layout& base, const std::vector<size_t>& order) {
  std::vector<int64_t> cuts{1};
  for (size_t i = order.size(); i-- > 0;) cuts.push_back(cuts.back() * base.sizes[order[i]]);
  return cuts;
}

// Cuts it where dimensions of the view do, too.
void cut_further(std::vector<int64_t>& cuts, const Layout& view, const std::vector<size_t>& order) {
  const auto cut = [&](int64_t at) {
    const auto above = std::lower_bound(cuts.begin(), cuts.end(), at);
    if (above == cuts.begin() || above == cuts.end() || *above == at) return;
    if (at % *(above - 1) == 0 && *above % at == 0) cuts.insert(above, at);
  };
  for (size_t i = order.size(); i-- > 0;) {
    cut(view.strides[order[i]]);
    cut(view.strides[order[i]] * view.sizes[order[i]]);
  }
}

// `distance`: of the view's first element from the base's.
std::vector<Digit> digits_of(const std::vector<int64_t>& cuts, int64_t distance) {
  std::vector<Digit> digits;
  for (size_t i = cuts.size() - 1; i-- > 0;) {
    Digit digit{cuts[i], cuts[i + 1] / cuts[i]};
    digit.start = distance / digit.unit;
    distance %= digit.unit;
    digits.push_back(digit);
  }
  return digits;
}

// Takes the digits that a dimension of the view runs over; false where it runs over no whole ones.
bool take(std::vector<Digit>& digits, int64_t size, int64_t stride) {
  size_t last = digits.size();
  while (last > 0 && digits[last - 1].unit <= stride) --last;
  if (last == digits.size()) return false;
  Digit& digit = digits[last];
  if (digit.used || stride % digit.unit != 0) return false;
  digit.used = true;
  digit.step = stride / digit.unit;
  digit.count = size;
  if (digit.start + (size - 1) * digit.step < digit.size) return true;
  // Several whole digits that run on in one another.
  if (digit.step != 1) return false;
  int64_t covered = 1;
  for (size_t i = last + 1; i-- > 0 && covered < size;) {
    Digit& whole = digits[i];
    if (whole.start != 0 || (i != last && whole.used)) return false;
    whole.used = true;
    whole.count = whole.size;
    covered *= whole.size;
  }
  return covered == size;
}

// Digits with what the view takes of them.
std::optional<std::vector<Digit>> digits_taken(const Layout& base,
                                               const std::vector<size_t>& base_order,
                                               const Layout& view,
                                               const std::vector<size_t>& view_order) {
  std::vector<int64_t> cuts = cuts_of(base, base_order);
  for (const bool further : {false, true}) {
    if (further) cut_further(cuts, view, view_order);
    std::vector<Digit> digits = digits_of(cuts, view.offset - base.offset);
    if (std::all_of(view_order.begin(), view_order.end(),
                    [&](size_t dim) { return take(digits, view.sizes[dim], view.strides[dim]); }))
      return digits;
  }
  return std::nullopt;
}

}  // namespace

ViewOperator operator_of(NamedView::Kind kind) {
  switch (kind) {
    case NamedView::Kind::kPermute:
      return {"aten::permute", ""};
    case NamedView::Kind::kReshape:
      return {"aten::reshape", ""};
    case NamedView::Kind::kSlice:
      return {"aten::slice", "Tensor"};
    case NamedView::Kind::kExpand:
      break;
  }
  return {"aten::expand", ""};
}

std::vector<c10::IValue> constants_of(const NamedView& view) {
  if (view.kind == NamedView::Kind::kSlice) return {view.arguments.begin(), view.arguments.end()};
  if (view.kind == NamedView::Kind::kExpand) return {view.arguments, false};
  return {view.arguments};
}

std::optional<std::vector<NamedView>> named_views(const Layout& base, const Layout& view) {
  if (base.numel() == 0 || view.numel() == 0 || !is_dense(base.sizes, base.strides))
    return std::nullopt;
  if (view.offset < base.offset || view.offset >= base.offset + base.numel()) return std::nullopt;
  const std::vector<size_t> base_order = memory_order(base), view_order = memory_order(view);
  const auto taken = digits_taken(base, base_order, view, view_order);
  if (!taken) return std::nullopt;
  const std::vector<Digit>& digits = *taken;

  Chain chain({base.sizes.begin(), base.sizes.end()});
  if (!std::is_sorted(base_order.begin(), base_order.end())) {
    std::vector<int64_t> dims(base_order.begin(), base_order.end());
    for (size_t i = 0; i < base.sizes.size(); ++i)
      if (std::find(base_order.begin(), base_order.end(), i) == base_order.end())
        dims.push_back(int64_t(i));
    chain.permute(std::move(dims));
  }
  std::vector<int64_t> sizes;
  for (const Digit& digit : digits) sizes.push_back(digit.size);
  chain.reshape(sizes);
  for (size_t i = 0; i < digits.size(); ++i)
    chain.slice(i, digits[i].start, digits[i].count, digits[i].step);

  // As the view's dimensions lie in memory, those of one element or stride 0 at their places if
  // the others are in order, else at the end.
  const std::vector<int64_t> wanted(view.sizes.begin(), view.sizes.end());
  std::vector<size_t> order = view_order;
  const bool in_order = std::is_sorted(order.begin(), order.end());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (std::find(view_order.begin(), view_order.end(), i) == view_order.end()) order.push_back(i);
  if (in_order) std::sort(order.begin(), order.end());
  std::vector<int64_t> laid_out, places(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    laid_out.push_back(view.strides[order[i]] == 0 ? 1 : wanted[order[i]]);
    places[order[i]] = int64_t(i);
  }
  chain.reshape(laid_out);
  chain.permute(places);
  chain.expand(wanted);
  return chain.take();
}

}  // namespace torch_lazy
