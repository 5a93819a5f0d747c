// The thread that gives a device the early stages of windows.

#include "trace/early_thread.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace torch_lazy {
namespace {

// Such threads are never destroyed. There is one on machines with one core, too.
EarlyThread& new_thread() {
  return *new EarlyThread(/*has_thread=*/true);
}

TEST(EarlyThread, TasksAreDoneInTheirOrder) {
  EarlyThread& thread = new_thread();
  std::vector<int> done;
  for (int i = 0; i < 100; ++i) thread.post([&done, i] { done.push_back(i); });

  ASSERT_TRUE(thread.wait());
  ASSERT_EQ(done.size(), 100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[size_t(i)], i);
}

TEST(EarlyThread, ATaskIsDoneThoughNobodyWaits) {
  EarlyThread& thread = new_thread();
  std::promise<void> done;
  thread.post([&] { done.set_value(); });

  EXPECT_EQ(done.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_TRUE(thread.wait());
}

TEST(EarlyThread, WithoutAThreadWhoPostsATaskDoesIt) {
  EarlyThread& none = *new EarlyThread(/*has_thread=*/false);
  std::thread::id done_by;

  none.post([&] { done_by = std::this_thread::get_id(); });

  EXPECT_EQ(done_by, std::this_thread::get_id());
  EXPECT_TRUE(none.wait());
}

TEST(EarlyThread, WhatWasNotBegunIsDroppedByCancel) {
  EarlyThread& thread = new_thread();
  std::promise<void> begun, may_end;
  std::atomic<int> done{0};
  thread.post([&] {
    begun.set_value();
    may_end.get_future().wait();
    ++done;
  });
  // Lets the first task end when the second is dropped.
  std::shared_ptr<void> ends_it(nullptr, [&](void*) { may_end.set_value(); });
  thread.post([&done, ends_it = std::move(ends_it)] { done += 10; });
  begun.get_future().wait();

  EXPECT_TRUE(thread.cancel());
  EXPECT_EQ(done, 1);
  thread.post([&] { done += 100; });
  EXPECT_TRUE(thread.wait());
  EXPECT_EQ(done, 101);
}

// What a child of a fork makes of it.
int status_of_child(const std::function<bool()>& in_child) {
  const pid_t child = fork();
  if (child == 0) _exit(in_child() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(EarlyThread, AChildHasOneOfItsOwn) {
  EarlyThread& thread = new_thread();
  int done = 0;
  thread.post([&] { ++done; });
  ASSERT_TRUE(thread.wait());

  EXPECT_EQ(status_of_child([&] {
              thread.post([&] { ++done; });
              return thread.wait() && done == 2;
            }),
            0);
}

TEST(EarlyThread, AChildIsToldOfTasksThatOnlyItsParentHas) {
  EarlyThread& thread = new_thread();
  std::promise<void> begun, may_end;
  int done = 0;
  thread.post([&] {
    begun.set_value();
    may_end.get_future().wait();
  });
  begun.get_future().wait();

  EXPECT_EQ(status_of_child([&] {
              if (thread.wait() || thread.cancel()) return false;
              thread.post([&] { ++done; });
              return thread.wait() && done == 1;
            }),
            0);
  may_end.set_value();
  EXPECT_TRUE(thread.wait());
}

}  // namespace
}  // namespace torch_lazy
