#include "plan/arena.h"

#include <gtest/gtest.h>

#include <random>

namespace torch_lazy {
namespace {

struct Life {
  int64_t bytes;
  size_t first, last;
};

// An arena for values with the given lives, in order.
Arena arena_of(const std::vector<Life>& lives) {
  Arena arena;
  for (const Life& life : lives) arena.use(arena.add(life.bytes, life.first), life.last);
  arena.assign();
  return arena;
}

TEST(Arena, ValuesAliveTogetherLieApart) {
  const Arena arena = arena_of({{64, 0, 2}, {64, 1, 3}});

  EXPECT_EQ(arena.offset(0), 0);
  EXPECT_EQ(arena.offset(1), 64);
  EXPECT_EQ(arena.bytes(), 128);
}

TEST(Arena, AValueReadInTheStepThatMakesAnotherIsStillAlive) {
  const Arena arena = arena_of({{64, 0, 1}, {64, 1, 2}});

  EXPECT_NE(arena.offset(0), arena.offset(1));
}

TEST(Arena, AValueTakesThePlaceOfADeadOne) {
  const Arena arena = arena_of({{64, 0, 1}, {64, 1, 2}, {64, 2, 3}});

  EXPECT_EQ(arena.offset(2), arena.offset(0));
  EXPECT_EQ(arena.bytes(), 128);
}

TEST(Arena, NeighboursThatDiedMakeOnePlace) {
  const Arena arena = arena_of({{64, 0, 1}, {64, 0, 1}, {64, 0, 1}, {192, 2, 3}});

  EXPECT_EQ(arena.offset(3), 0);
  EXPECT_EQ(arena.bytes(), 192);
}

TEST(Arena, AGapAtTheEndGrows) {
  const Arena arena = arena_of({{64, 0, 2}, {64, 0, 1}, {256, 2, 3}});

  EXPECT_EQ(arena.offset(2), 64);
  EXPECT_EQ(arena.bytes(), 320);
}

TEST(Arena, PlacesAreAlignedToCacheLines) {
  const Arena arena = arena_of({{1, 0, 1}, {65, 0, 1}, {0, 0, 1}, {8, 0, 1}});

  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(arena.offset(i) % 64, 0) << i;
  EXPECT_EQ(arena.offset(1), 64);
  EXPECT_EQ(arena.offset(2), 192);
  EXPECT_EQ(arena.offset(3), 256);
}

TEST(Arena, IsEmptyWithoutValues) {
  EXPECT_EQ(arena_of({}).bytes(), 0);
}

TEST(Arena, NoTwoOfManyRandomLivesShareAByteAndMemoryIsReused) {
  std::mt19937 random(1);
  const auto below = [&](size_t limit) { return size_t(random() % limit); };
  for (int repetition = 0; repetition < 50; ++repetition) {
    std::vector<Life> lives;
    int64_t all = 0;
    for (size_t i = 0; i < 120; ++i) {
      const size_t first = below(100);
      lives.push_back({int64_t(below(1000)) + 1, first, first + below(8)});
      all += lives.back().bytes;
    }

    const Arena arena = arena_of(lives);

    for (size_t a = 0; a < lives.size(); ++a) {
      ASSERT_LE(arena.offset(a) + lives[a].bytes, arena.bytes());
      for (size_t b = 0; b < a; ++b) {
        const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        const bool apart = arena.offset(a) + lives[a].bytes <= arena.offset(b) ||
                           arena.offset(b) + lives[b].bytes <= arena.offset(a);
        ASSERT_TRUE(!together || apart) << "repetition " << repetition << ": " << a << ", " << b;
      }
    }
    EXPECT_LT(arena.bytes(), all / 2);
  }
}

}  // namespace
}  // namespace torch_lazy
