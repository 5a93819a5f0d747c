#include "passes/named_views.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ops/operator_info.h"

namespace torch_lazy {
namespace {

Layout layout_of(const at::Tensor& tensor) {
  return {{tensor.sizes().begin(), tensor.sizes().end()},
          {tensor.strides().begin(), tensor.strides().end()},
          tensor.storage_offset()};
}

// The chain as calls, and what they make of the base.
struct Chain {
  std::string text;
  at::Tensor result;
};

std::optional<Chain> chain_of(const at::Tensor& base, const at::Tensor& view) {
  const auto views = named_views(layout_of(base), layout_of(view));
  if (!views) return std::nullopt;
  Chain chain{"", base};
  for (const NamedView& named : *views) {
    const ViewOperator names = operator_of(named.kind);
    torch::jit::Stack stack{chain.result};
    chain.text += (chain.text.empty() ? "" : " ") + std::string(names.name + 6);
    for (const c10::IValue& constant : constants_of(named)) stack.push_back(constant);
    operator_info(names.name, names.overload).handle.callBoxed(stack);
    chain.result = stack.at(0).toTensor();
    EXPECT_EQ(chain.result.sizes(), c10::IntArrayRef(named.sizes));
  }
  return chain;
}

std::string names(const at::Tensor& base, const at::Tensor& view) {
  const auto chain = chain_of(base, view);
  if (!chain) return "none";
  EXPECT_TRUE(at::equal(chain->result, view));
  return chain->text;
}

at::Tensor counted(c10::IntArrayRef sizes) {
  return at::arange(c10::multiply_integers(sizes)).view(sizes);
}

TEST(NamedViews, EachOperatorIsFoundAgain) {
  const at::Tensor x = counted({4, 6, 5});

  EXPECT_EQ(names(x, x), "");
  EXPECT_EQ(names(x, x.transpose(0, 2)), "permute");
  EXPECT_EQ(names(x, x.view({2, 2, 30})), "reshape");
  EXPECT_EQ(names(x, x.slice(1, 1, 6, 2)), "slice");
  EXPECT_EQ(names(x, x.unsqueeze(1).expand({4, 3, 6, 5})), "reshape expand");
  EXPECT_EQ(names(x, x.select(1, 2)), "slice reshape");
}

TEST(NamedViews, TheHeadsOfAttentionAreReshapedAndPermuted) {
  const at::Tensor projected = counted({2, 7, 12});

  EXPECT_EQ(names(projected, projected.view({2, 7, 3, 4}).transpose(1, 2)), "reshape permute");
}

TEST(NamedViews, AViewOfAPermutedBaseThatUndoesItNeedsNoPermute) {
  const at::Tensor base = counted({3, 4}).t();

  EXPECT_EQ(names(base, base.t()), "permute");
  EXPECT_EQ(names(base, base), "");
}

TEST(NamedViews, WindowsThatOverlapAndBasesWithGapsHaveNoName) {
  const at::Tensor x = counted({10});

  EXPECT_EQ(names(x, x.unfold(0, 3, 1)), "none");
  EXPECT_EQ(names(x.slice(0, 0, 10, 2), x.slice(0, 0, 10, 4)), "none");
  EXPECT_EQ(names(x.slice(0, 2, 6), x), "none");
}

at::Tensor random_view(const at::Tensor& tensor, std::mt19937& random) {
  const int64_t dims = tensor.dim();
  const int64_t dim = dims ? int64_t(random() % size_t(dims)) : 0;
  switch (random() % 6) {
    case 0:
      return dims ? tensor.transpose(dim, int64_t(random() % size_t(dims))) : tensor;
    case 1: {
      if (!dims || tensor.size(dim) < 2) return tensor;
      const int64_t start = int64_t(random() % size_t(tensor.size(dim)));
      return tensor.slice(dim, start, tensor.size(dim), 1 + int64_t(random() % 2));
    }
    case 2:
      return dims ? tensor.select(dim, int64_t(random() % size_t(tensor.size(dim)))) : tensor;
    case 3:
      return tensor.unsqueeze(dim);
    case 4: {
      std::vector<int64_t> sizes = tensor.sizes().vec();
      for (int64_t& size : sizes)
        if (size == 1) size = 1 + int64_t(random() % 3);
      return tensor.expand(sizes);
    }
    default:
      return dims && tensor.size(dim) % 2 == 0 && tensor.size(dim) > 0
                 ? tensor.unflatten(dim, {2, tensor.size(dim) / 2})
                 : tensor;
  }
}

TEST(NamedViews, AChainOfRandomViewsReadsTheSameElements) {
  std::mt19937 random(7);
  int found = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<int64_t> sizes;
    for (size_t dims = random() % 4; dims > 0; --dims) sizes.push_back(1 + int64_t(random() % 6));
    at::Tensor base = counted(sizes);
    if (sizes.size() > 1 && random() % 3 == 0) base = base.transpose(0, 1);
    at::Tensor view = base;
    for (int step = 0; step < 4; ++step) view = random_view(view, random);

    const auto chain = chain_of(base, view);

    if (!chain) continue;
    ++found;
    ASSERT_TRUE(at::equal(chain->result, view)) << i << ": " << chain->text;
  }
  EXPECT_GT(found, 2900);
}

}  // namespace
}  // namespace torch_lazy
