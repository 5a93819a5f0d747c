// What is kept on disk between processes, and that nothing of it is ever the caller's trouble.

#include "base/disk_cache.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/metrics.h"
#include "base/warn.h"
#include "temporary_directory.h"

namespace torch_lazy {
namespace {

namespace fs = std::filesystem;

std::vector<std::string>& disk_warnings() {
  static auto* const seen = new std::vector<std::string>;
  return *seen;
}

class DiskCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    disk_warnings().clear();
    set_warning_sink([](const std::string& message) { disk_warnings().push_back(message); });
    metrics().disk_cache.reset();
  }
  void TearDown() override { set_warning_sink(nullptr); }

  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(directory_)) found.push_back(entry.path());
    return found;
  }
  static int64_t counted(const char* name) { return metrics().disk_cache[name]; }

  static constexpr int64_t kLimit = 1 << 20;
  const tests::TemporaryDirectory temporary_;
  const fs::path parent_ = temporary_.path(), directory_ = parent_ / "kernels";
};

TEST_F(DiskCacheTest, WhatOneObjectPutAnotherGets) {
  DiskCache(directory_, kLimit).put("source", "machine code");

  DiskCache later(directory_, kLimit);
  EXPECT_EQ(later.get("source"), "machine code");
  EXPECT_EQ(later.get("another source"), std::nullopt);
  EXPECT_EQ(counted("hit"), 1);
  EXPECT_EQ(counted("miss"), 1);
  EXPECT_TRUE(disk_warnings().empty());
}

TEST_F(DiskCacheTest, AValueMayHoldAnyBytesAndNone) {
  DiskCache cache(directory_, kLimit);
  const std::string zeros(1000, '\0');
  cache.put("zeros", zeros);
  cache.put("empty", "");

  EXPECT_EQ(cache.get("zeros"), zeros);
  EXPECT_EQ(cache.get("empty"), "");
}

TEST_F(DiskCacheTest, OnlyTheUserMayReadAndWrite) {
  DiskCache(directory_, kLimit).put("source", "machine code");

  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms::owner_all);
  ASSERT_EQ(files().size(), 1U);
  EXPECT_EQ(fs::status(files()[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(DiskCacheTest, ABrokenFileIsNotThereAndIsRemoved) {
  DiskCache cache(directory_, kLimit);
  const auto put_and_break = [&](const auto& damage) {
    cache.put("source", "machine code");
    damage(files().at(0));
    EXPECT_EQ(cache.get("source"), std::nullopt);
    EXPECT_TRUE(files().empty());
  };

  put_and_break([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); });
  put_and_break([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) + 1); });
  put_and_break([](const fs::path& file) { fs::resize_file(file, 3); });
  put_and_break([](const fs::path& file) { fs::resize_file(file, 0); });
  put_and_break([](const fs::path& file) {
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end)
        << 'X';
  });
  EXPECT_EQ(counted("broken"), 5);
  ASSERT_EQ(disk_warnings().size(), 1U) << "warned once";
  EXPECT_NE(disk_warnings()[0].find("a file was broken and is replaced"), std::string::npos);
}

TEST_F(DiskCacheTest, ADirectoryThatOthersMayWriteToIsRefused) {
  fs::create_directory(directory_);
  fs::permissions(directory_, fs::perms::owner_all | fs::perms::group_write);

  DiskCache cache(directory_, kLimit);
  cache.put("source", "machine code");

  EXPECT_FALSE(cache.usable());
  EXPECT_EQ(cache.get("source"), std::nullopt);
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(counted("refused"), 1);
  ASSERT_EQ(disk_warnings().size(), 1U);
  EXPECT_NE(disk_warnings()[0].find("other users may write to it (mode 720, expected 700)"),
            std::string::npos)
      << disk_warnings()[0];
}

TEST_F(DiskCacheTest, APathThatIsNoDirectoryIsRefused) {
  std::ofstream(parent_ / "file") << "text";

  EXPECT_FALSE(DiskCache(parent_ / "file", kLimit).usable());
  EXPECT_FALSE(DiskCache(parent_ / "file" / "below", kLimit).usable());
  EXPECT_EQ(disk_warnings().size(), 2U);
}

TEST_F(DiskCacheTest, ALinkToADirectoryIsRefused) {
  fs::create_directory(parent_ / "elsewhere");
  fs::create_directory_symlink(parent_ / "elsewhere", directory_);

  EXPECT_FALSE(DiskCache(directory_, kLimit).usable());
}

TEST_F(DiskCacheTest, AWarningThatIsAnErrorIsNotRaised) {
  std::ofstream(parent_ / "file") << "text";
  set_warning_sink([](const std::string& message) { throw std::runtime_error(message); });

  EXPECT_FALSE(DiskCache(parent_ / "file", kLimit).usable());
}

TEST_F(DiskCacheTest, ADirectoryThatDisappearedIsNoError) {
  DiskCache cache(directory_, kLimit);
  fs::remove_all(directory_);

  cache.put("source", "machine code");
  cache.put("another source", "machine code");

  EXPECT_EQ(cache.get("source"), std::nullopt);
  EXPECT_EQ(counted("not stored"), 2);
  EXPECT_EQ(disk_warnings().size(), 1U) << "warned once";
}

// A limit on the size of files stands for a full disk; in a child, because it holds for good.
TEST_F(DiskCacheTest, AFullDiskLeavesNothingHalfWritten) {
  DiskCache cache(directory_, kLimit);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    cache.put("source", std::string(5000, 'x'));
    const bool told = disk_warnings().size() == 1 && counted("not stored") == 1;
    ::_exit(told && !cache.get("source") ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);

  EXPECT_EQ(status, 0);
  EXPECT_TRUE(files().empty());
}

TEST_F(DiskCacheTest, OverTheLimitWhatWasUsedLongestAgoGoes) {
  constexpr int kEntries = 40;
  const std::string value(kLimit / 20, 'x');
  DiskCache cache(directory_, kLimit);
  for (int i = 0; i < kEntries; ++i) {
    cache.put("source " + std::to_string(i), value);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // coarse clocks of file systems
    EXPECT_EQ(cache.get("source 0"), value) << "in use at " << i;
  }

  uintmax_t bytes = 0;
  for (const fs::path& file : files()) bytes += fs::file_size(file);
  EXPECT_LE(bytes, uintmax_t{kLimit} * 9 / 8 + value.size());
  EXPECT_EQ(cache.get("source 1"), std::nullopt);
  EXPECT_EQ(cache.get("source " + std::to_string(kEntries - 1)), value);
  EXPECT_GT(counted("evicted"), 0);
}

TEST_F(DiskCacheTest, OfManyProcessesThatWriteALittleSomeMakeRoom) {
  constexpr int64_t kSmallLimit = 8000;
  const std::string value(200, 'x');

  for (int i = 0; i < 400; ++i)
    DiskCache(directory_, kSmallLimit).put("source " + std::to_string(i), value);

  EXPECT_GT(counted("evicted"), 0);
  EXPECT_LT(files().size(), 200U);
}

TEST_F(DiskCacheTest, FilesOfOthersAreLeftAlone) {
  DiskCache cache(directory_, 1000);
  const fs::path source = directory_ / "kernels.cpp", fresh = directory_ / "kernels.unfinished.cpp";
  for (const fs::path& file : {source, fresh}) {
    std::ofstream(file) << std::string(5000, 'x');
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }

  for (int i = 0; i < 20; ++i) cache.put("source " + std::to_string(i), std::string(200, 'x'));

  EXPECT_GT(counted("evicted"), 0);
  EXPECT_TRUE(fs::exists(source));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(DiskCacheTest, AValueBeyondTheLimitIsNotKept) {
  DiskCache cache(directory_, 100);
  cache.put("source", std::string(101, 'x'));

  EXPECT_TRUE(files().empty());
}

TEST_F(DiskCacheTest, WhatADeadProcessLeftHalfWrittenIsSweptAway) {
  DiskCache(directory_, kLimit).put("source", "machine code");
  const std::string name(32, 'a');
  const fs::path left = directory_ / (name + ".unfinished.1");
  const fs::path being_written = directory_ / (name + ".unfinished.2");
  std::ofstream(left) << "half";
  std::ofstream(being_written) << "half";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));

  // As much as makes a process look at the whole directory.
  DiskCache(directory_, kLimit).put("another source", std::string(kLimit / 8, 'x'));

  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(being_written));
}

TEST_F(DiskCacheTest, ManyWritersAndReadersSeeWholeValuesOnly) {
  DiskCache cache(directory_, kLimit);
  const auto value = [](int i) { return std::string(20000, static_cast<char>('a' + i)); };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const std::string key = "source " + std::to_string(i % 5);
        cache.put(key, value(i % 5));
        EXPECT_EQ(cache.get(key), value(i % 5));
      }
    });
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(counted("broken"), 0);
  EXPECT_EQ(files().size(), 5U);
}

TEST(DefaultCacheDirectory, IsBelowTheUsersCaches) {
  const auto with = [](const char* caches, const char* home) {
    const std::string old_caches =
        std::getenv("XDG_CACHE_HOME") ? std::getenv("XDG_CACHE_HOME") : "";
    const std::string old_home = std::getenv("HOME") ? std::getenv("HOME") : "";
    ::setenv("XDG_CACHE_HOME", caches, 1);
    ::setenv("HOME", home, 1);
    std::string found = default_cache_directory();
    ::setenv("XDG_CACHE_HOME", old_caches.c_str(), 1);
    ::setenv("HOME", old_home.c_str(), 1);
    return found;
  };

  EXPECT_EQ(with("/caches", "/home/user"), "/caches/torch_lazy");
  EXPECT_EQ(with("relative", "/home/user"), "/home/user/.cache/torch_lazy");
  EXPECT_EQ(with("", "/home/user"), "/home/user/.cache/torch_lazy");
  EXPECT_EQ(with("", ""), "");
}

}  // namespace
}  // namespace torch_lazy
