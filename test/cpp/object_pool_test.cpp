#include "device/object_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

namespace torch_lazy {
namespace {

// Each test has a pool of its own.
template <int kTest>
struct Object {
  char bytes[96];
};

TEST(ObjectPool, AThreadIsGivenWhatItReleasedLast) {
  using Pool = ObjectPool<Object<1>>;
  void* const first = Pool::allocate();
  void* const second = Pool::allocate();
  Pool::release(first);
  Pool::release(second);

  void* const again = Pool::allocate();
  void* const before = Pool::allocate();

  EXPECT_EQ(again, second);
  EXPECT_EQ(before, first);
  Pool::release(again);
  Pool::release(before);
}

TEST(ObjectPool, ObjectsInUseAreDistinctWholeMemory) {
  using Pool = ObjectPool<Object<2>>;
  std::set<void*> in_use;
  std::vector<void*> objects;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      void* const object = Pool::allocate();
      std::fill_n(static_cast<char*>(object), sizeof(Object<2>), char(i));
      EXPECT_TRUE(in_use.insert(object).second);
      objects.push_back(object);
    }
    for (size_t i = 0; i < objects.size(); ++i)
      EXPECT_EQ(static_cast<char*>(objects[i])[sizeof(Object<2>) - 1], char(i));
    for (void* const object : objects) Pool::release(object);
    objects.clear();
    in_use.clear();
  }
}

TEST(ObjectPool, AnObjectMayBeReleasedByAnotherThreadThatEnds) {
  using Pool = ObjectPool<Object<3>>;
  void* const object = Pool::allocate();
  void* seen_there = nullptr;

  std::thread([&] {
    Pool::release(object);
    seen_there = Pool::allocate();
    Pool::release(seen_there);
  }).join();

  EXPECT_EQ(seen_there, object);
  Pool::release(Pool::allocate());  // this thread's list knows nothing of it
}

TEST(ObjectPool, ObjectsInUseAreCountedAcrossThreads) {
  using Pool = ObjectPool<Object<4>>;
  void* const here = Pool::allocate();
  void* there = nullptr;

  std::thread([&] { there = Pool::allocate(); }).join();
  EXPECT_EQ(Pool::in_use(), 2);

  std::thread([&] { Pool::release(here); }).join();
  EXPECT_EQ(Pool::in_use(), 1);
  Pool::release(there);
  EXPECT_EQ(Pool::in_use(), 0);
}

}  // namespace
}  // namespace torch_lazy
