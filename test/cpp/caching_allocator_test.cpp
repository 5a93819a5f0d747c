// What the allocator of lazy tensors hands out, what it keeps, and what it gives back.

#include "memory/caching_allocator.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "memory/allocate_for_lazy.h"
#include "memory/memory_pool.h"

namespace torch_lazy {
namespace {

constexpr size_t kMiB = size_t(1) << 20;

class CachingAllocatorTest : public testing::Test {
 protected:
  void SetUp() override { empty_cache(); }
  CachingAllocator& allocator = CachingAllocator::instance();
};

int64_t allocated() {
  return memory_statistics().allocated;
}

int64_t reserved() {
  return memory_statistics().reserved;
}

TEST(SizeClass, HoldsWhatIsAskedForAndAnEighthMoreAtMost) {
  for (size_t bytes = 1; bytes < 100'000; ++bytes) {
    const size_t held = size_class(bytes, 64).bytes;
    ASSERT_GE(held, bytes);
    ASSERT_LT(held, bytes + bytes / 8 + 64);
  }
}

TEST(SizeClass, NumbersClassesInOrderWithoutGaps) {
  SizeClass before = size_class(1, 64);
  ASSERT_EQ(before.index, 0u);
  while (before.bytes < 10 * kMiB) {
    const SizeClass next = size_class(before.bytes + 1, 64);
    ASSERT_EQ(next.index, before.index + 1);
    ASSERT_GT(next.bytes, before.bytes);
    ASSERT_EQ(size_class(next.bytes, 64).index, next.index);
    before = next;
  }
}

TEST_F(CachingAllocatorTest, AlignsEveryBlockTo64Bytes) {
  for (const size_t bytes : {1ul, 65ul, 1000ul, 4097ul, 33'000ul, 3 * kMiB + 1}) {
    const c10::DataPtr block = allocator.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0u) << bytes;
  }
}

TEST_F(CachingAllocatorTest, GivesNoMemoryForZeroBytes) {
  const c10::DataPtr block = allocator.allocate(0);

  EXPECT_EQ(block.get(), nullptr);
  EXPECT_EQ(block.device(), c10::Device(c10::kCPU));
}

TEST_F(CachingAllocatorTest, BlocksInUseDoNotOverlap) {
  std::mt19937 random(1);
  struct Block {
    c10::DataPtr memory;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  const auto intact = [](const Block& block) {
    const auto* bytes = static_cast<const unsigned char*>(block.memory.get());
    for (size_t i = 0; i < block.bytes; ++i)
      if (bytes[i] != block.mark) return false;
    return true;
  };
  for (int i = 0; i < 20'000; ++i) {
    if (blocks.size() > 100) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      ASSERT_TRUE(intact(blocks.back()));
      blocks.pop_back();
    }
    const size_t bytes = 1 + random() % (size_t(1) << (random() % 18));
    blocks.push_back({allocator.allocate(bytes), bytes, static_cast<unsigned char>(random())});
    std::memset(blocks.back().memory.get(), blocks.back().mark, bytes);
  }
  for (const Block& block : blocks) EXPECT_TRUE(intact(block));
}

TEST_F(CachingAllocatorTest, ReusesTheBlockThatWasJustFreed) {
  for (const size_t bytes : {100ul, 10'000ul, 100'000ul, 64 * kMiB}) {
    void* const first = allocator.allocate(bytes).get();  // freed at once

    const c10::DataPtr second = allocator.allocate(bytes);

    EXPECT_EQ(second.get(), first) << bytes;
  }
}

TEST_F(CachingAllocatorTest, ALoopOverALargeBufferCallsTheSystemOnce) {
  allocator.allocate(64 * kMiB);
  const MemoryStatistics before = memory_statistics();

  for (int i = 0; i < 100; ++i) allocator.allocate(64 * kMiB);

  const MemoryStatistics after = memory_statistics();
  EXPECT_EQ(after.system_calls, before.system_calls);
  EXPECT_EQ(after.cache_hits - before.cache_hits, 100);
}

TEST_F(CachingAllocatorTest, BlocksOfManySizesInTurnsNeedNoNewMemory) {
  const auto step = [&](size_t rows) {
    std::vector<c10::DataPtr> saved;
    for (size_t layer = 1; layer <= 12; ++layer)
      saved.push_back(allocator.allocate(rows * layer * 10'000));
    while (!saved.empty()) {
      allocator.allocate(rows * 40'000);
      saved.pop_back();
    }
  };
  const auto all = [&] {
    for (size_t rows = 0; rows < 111; ++rows) step(rows * 55 % 111 + 17);
  };
  all();
  const MemoryStatistics before = memory_statistics();

  all();

  EXPECT_EQ(memory_statistics().system_calls, before.system_calls);
  EXPECT_EQ(memory_statistics().peak_reserved, before.peak_reserved);
}

TEST_F(CachingAllocatorTest, CountsTheBytesAskedFor) {
  const int64_t before = allocated();

  std::vector<c10::DataPtr> blocks;
  for (const size_t bytes : {1ul, 1000ul, 100'000ul, 5 * kMiB + 3})
    blocks.push_back(allocator.allocate(bytes));
  EXPECT_EQ(allocated() - before, int64_t(101'001 + 5 * kMiB + 3));
  blocks.clear();

  EXPECT_EQ(allocated(), before);
}

TEST_F(CachingAllocatorTest, KeepsThePeakUntilItIsReset) {
  reset_peak_memory();
  const int64_t before = allocated();

  allocator.allocate(8 * kMiB);
  EXPECT_EQ(memory_statistics().peak_allocated, before + int64_t(8 * kMiB));
  reset_peak_memory();

  EXPECT_EQ(memory_statistics().peak_allocated, before);
}

TEST_F(CachingAllocatorTest, AnEmptiedCacheHoldsWhatIsInUseAlone) {
  const int64_t before = reserved();
  const c10::DataPtr used = allocator.allocate(4 * kMiB);
  allocator.allocate(64 * kMiB);
  EXPECT_GE(reserved() - before, int64_t(64 * kMiB));

  empty_cache();

  EXPECT_EQ(reserved() - before, int64_t(4 * kMiB));
}

TEST_F(CachingAllocatorTest, AddressesOfAnEmptiedCacheMayBeAnothersMemory) {
  void* const was = allocator.allocate(64 * kMiB).get();  // freed at once
  ASSERT_NE(MemoryPool::instance().find(was), nullptr);

  empty_cache();

  void* const other = mmap(was, 64 * kMiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(other, was);
  EXPECT_EQ(MemoryPool::instance().find(other), nullptr);
  munmap(other, 64 * kMiB);
}

TEST_F(CachingAllocatorTest, WhatIsKeptStaysWithinTheMostThatWasInUse) {
  // No block is large enough for the next request.
  int64_t most_in_use = 0;
  for (size_t size = 64 * kMiB; size < 512 * kMiB; size += size / 3) {
    most_in_use = allocated() + int64_t(size);
    allocator.allocate(size);
  }

  EXPECT_LT(reserved(), most_in_use * 17 / 16 + int64_t(12 * kMiB));
}

TEST_F(CachingAllocatorTest, SmallObjectsGiveTheirSlabsBack) {
  const int64_t before = reserved();
  std::vector<c10::DataPtr> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(allocator.allocate(256));
  EXPECT_GT(reserved() - before, 100'000 * 256);
  blocks.clear();

  empty_cache();

  EXPECT_LT(reserved() - before, int64_t(kMiB));
}

TEST_F(CachingAllocatorTest, RaisesTheErrorOfTheCpuAllocatorWhenThereIsNoMemory) {
  const auto message = [](c10::Allocator& asked, size_t bytes) -> std::string {
    try {
      asked.allocate(bytes);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "no error";
  };
  for (const size_t bytes : {size_t(1) << 45, size_t(1) << 60, size_t(1) << 63}) {
    const std::string expected = message(*c10::GetDefaultCPUAllocator(), bytes);

    EXPECT_EQ(message(allocator, bytes), expected);
    EXPECT_NE(expected, "no error");
  }
}

TEST_F(CachingAllocatorTest, ABlockMayBeFreedByAnotherThread) {
  const int64_t before = allocated();
  for (int round = 0; round < 20; ++round) {
    std::vector<c10::DataPtr> blocks;
    for (size_t bytes = 1; bytes < kMiB; bytes += bytes / 2 + 1)
      blocks.push_back(allocator.allocate(bytes));

    std::thread([taken = std::move(blocks)]() mutable { taken.clear(); }).join();
  }
  EXPECT_EQ(allocated(), before);
}

TEST_F(CachingAllocatorTest, ThreadsAllocateAtTheSameTime) {
  const int64_t before = allocated();
  const auto work = [this](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<c10::DataPtr> blocks(50);
    for (int i = 0; i < 20'000; ++i) {
      c10::DataPtr& block = blocks[random() % blocks.size()];
      block = allocator.allocate(1 + random() % 100'000);
      static_cast<char*>(block.get())[0] = 1;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(allocated(), before);
}

TEST_F(CachingAllocatorTest, AForkedChildMayAllocateWhileThreadsWereAllocating) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) {
      allocator.allocate(100);
      allocator.allocate(100'000);
    }
  });
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a child that never gets a lock is ended
      for (int j = 0; j < 100; ++j) {
        allocator.allocate(200);
        allocator.allocate(200'000);
      }
      _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  stop = true;
  busy.join();

  EXPECT_EQ(failed, 0);
}

TEST_F(CachingAllocatorTest, SupportsTheRawInterface) {
  void* const block = allocator.raw_allocate(1000);
  std::memset(block, 1, 1000);
  allocator.raw_deallocate(block);

  EXPECT_EQ(allocator.allocate(1000).get(), block);
}

// ---------------------------------------------------------------- AllocateForLazy

bool caching(const at::Tensor& tensor) {
  return CachingAllocator::instance().owns(tensor.storage().data_ptr());
}

TEST(AllocateForLazy, ATensorsMemoryComesFromTheCacheInsideItAlone) {
  const at::Tensor before = at::empty({100});
  at::Tensor inside;
  {
    const AllocateForLazy scope;
    inside = at::empty({100});
  }
  const at::Tensor after = at::empty({100});

  EXPECT_FALSE(caching(before));
  EXPECT_TRUE(caching(inside));
  EXPECT_FALSE(caching(after));
}

TEST(AllocateForLazy, NestsAndCanBeSwitchedOff) {
  const AllocateForLazy scope;
  {
    const AllocateForLazy off(false);
    EXPECT_FALSE(caching(at::empty({100})));
  }
  EXPECT_TRUE(caching(at::empty({100})));
}

TEST(AllocateForLazy, OtherThreadsAllocateAsBefore) {
  const AllocateForLazy scope;
  at::Tensor made;

  std::thread([&] { made = at::empty({100}); }).join();

  EXPECT_FALSE(caching(made));
}

TEST(AllocateForLazy, OutsideItPyTorchsAllocatorServesUnchanged) {
  { const AllocateForLazy installs; }

  const c10::DataPtr block = c10::GetCPUAllocator()->allocate(100);

  EXPECT_EQ(block.get_deleter(), c10::GetDefaultCPUAllocator()->raw_deleter());
}

TEST(AllocateForLazy, TheRawInterfaceFreesMemoryOfBoth) {
  c10::Allocator* const allocator = c10::GetCPUAllocator();
  void* const plain = allocator->raw_allocate(1000);
  const int64_t before = allocated();
  void* block = nullptr;
  {
    const AllocateForLazy scope;
    block = allocator->raw_allocate(1000);
  }
  EXPECT_EQ(allocated(), before + 1000);

  allocator->raw_deallocate(block);
  allocator->raw_deallocate(plain);

  EXPECT_EQ(allocated(), before);
}

TEST(AllocateForLazy, AStorageGrowsInTheCacheOnlyInsideIt) {
  at::Tensor tensor;
  {
    const AllocateForLazy scope;
    tensor = at::empty({10});
  }

  tensor.resize_({1000});

  EXPECT_FALSE(caching(tensor));
}

}  // namespace
}  // namespace torch_lazy
