// How sets of elements in a storage relate.

#include "passes/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace torch_lazy {
namespace {

std::multiset<int64_t> elements(const Layout& layout) {
  std::multiset<int64_t> found;
  if (layout.numel() == 0) return found;
  std::vector<int64_t> index(layout.sizes.size());
  while (true) {
    int64_t at = layout.offset;
    for (size_t i = 0; i < index.size(); ++i) at += index[i] * layout.strides[i];
    found.insert(at);
    size_t i = index.size();
    while (i > 0 && ++index[i - 1] == layout.sizes[i - 1]) index[--i] = 0;
    if (i == 0) return found;
  }
}

Layout random_layout(std::mt19937& random) {
  Layout layout;
  const size_t dims = random() % 4;
  for (size_t i = 0; i < dims; ++i) {
    layout.sizes.push_back(random() % 12 == 0 ? 0 : 1 + int64_t(random() % 4));
    constexpr int64_t kStrides[] = {0, 1, 1, 2, 3, 4, 6, 8, 12};
    layout.strides.push_back(kStrides[random() % 9]);
  }
  layout.offset = int64_t(random() % 10);
  return layout;
}

TEST(Layout, ProofsHoldElementByElement) {
  std::mt19937 random(1);
  int distinct = 0, contained = 0, apart = 0;
  for (int i = 0; i < 20000; ++i) {
    const Layout a = random_layout(random), b = random_layout(random);
    const auto in_a = elements(a), in_b = elements(b);
    const std::set<int64_t> set_a(in_a.begin(), in_a.end()), set_b(in_b.begin(), in_b.end());
    SCOPED_TRACE(i);
    if (has_distinct_elements(a)) {
      ++distinct;
      ASSERT_EQ(in_a.size(), set_a.size());
    }
    if (contains(a, b)) {
      ++contained;
      ASSERT_TRUE(std::includes(set_a.begin(), set_a.end(), set_b.begin(), set_b.end()));
    }
    if (disjoint(a, b)) {
      ++apart;
      for (const int64_t element : set_a) ASSERT_EQ(set_b.count(element), 0u);
    }
    ASSERT_EQ(a.end(), set_a.empty() ? a.offset : *set_a.rbegin() + 1);
  }
  EXPECT_GT(distinct, 1000);
  EXPECT_GT(contained, 1000);
  EXPECT_GT(apart, 1000);
}

TEST(Layout, TellsSlicesOfOneTensorApart) {
  const Layout left{{4, 2}, {8, 1}, 0}, right{{4, 2}, {8, 1}, 2}, rows{{2, 8}, {8, 1}, 16};

  EXPECT_TRUE(disjoint(left, right));
  EXPECT_FALSE(disjoint(left, rows));
  EXPECT_TRUE(disjoint({{4}, {2}, 0}, {{4}, {2}, 1}));  // even and odd
  EXPECT_TRUE(disjoint({{3, 2}, {8, 1}, 8}, {{3, 2}, {8, 1}, 6}));
}

TEST(Layout, ContainsViewsOfWhatHasGaps) {
  const Layout columns{{4, 3}, {8, 1}, 2};

  EXPECT_TRUE(contains(columns, {{3, 4}, {1, 8}, 2}));
  EXPECT_TRUE(contains(columns, {{2, 2}, {16, 2}, 2}));
  EXPECT_FALSE(contains(columns, {{12}, {1}, 2}));
  EXPECT_FALSE(contains(columns, {{4, 3}, {8, 1}, 3}));
  EXPECT_TRUE(contains({{4, 8}, {8, 1}, 0}, {{32}, {1}, 0}));
}

TEST(Layout, MovesMemoryWithAViewOfIt) {
  const Layout heads{{4, 8, 16}, {16, 64, 1}, 0}, rows{{8, 64}, {64, 1}, 0};

  const auto in_wider_rows = moved(heads, rows, {{8, 64}, {192, 1}, 128});

  ASSERT_TRUE(in_wider_rows);
  EXPECT_EQ(*in_wider_rows, (Layout{{4, 8, 16}, {16, 192, 1}, 128}));
}

TEST(Layout, MovesAPartOfWhatAViewReaches) {
  const Layout second_half{{4, 8, 8}, {16, 64, 1}, 8}, rows{{8, 64}, {64, 1}, 0};

  const auto in_wider_rows = moved(second_half, rows, {{8, 64}, {192, 1}, 128});

  ASSERT_TRUE(in_wider_rows);
  EXPECT_EQ(*in_wider_rows, (Layout{{4, 8, 8}, {16, 192, 1}, 136}));
}

TEST(Layout, DoesNotMoveWhatRunsAcrossTheRowsOfAView) {
  const Layout whole{{32}, {1}, 0}, rows{{4, 8}, {8, 1}, 0};

  EXPECT_FALSE(moved(whole, rows, {{4, 8}, {16, 1}, 0}));
}

TEST(Layout, DenseLayoutsKeepTheOrderOfDimensions) {
  EXPECT_EQ(dense_layout({{2, 3}, {1, 4}, 7}), (Layout{{2, 3}, {1, 2}, 0}));
  EXPECT_EQ(dense_layout({{2, 3}, {8, 2}, 7}), (Layout{{2, 3}, {3, 1}, 0}));
}

}  // namespace
}  // namespace torch_lazy
