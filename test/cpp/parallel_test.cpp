// at::parallel_for as this project's code is compiled: without OpenMP it would run serially, and
// with a runtime other than PyTorch's two teams of threads would fight for the cores.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace torch_lazy {
namespace {

TEST(Parallel, LoopsAreSharedOutOverSeveralThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  at::set_num_threads(before);
  EXPECT_EQ(threads.size(), 2u);
}

TEST(Parallel, ThereIsOneOpenMpRuntime) {
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> runtimes;
  for (std::string line; std::getline(maps, line);)
    for (const char* name : {"libgomp", "libomp", "libiomp"})
      if (line.find(name) != std::string::npos) runtimes.insert(line.substr(line.find('/')));
  EXPECT_EQ(runtimes.size(), 1u);
}

}  // namespace
}  // namespace torch_lazy
