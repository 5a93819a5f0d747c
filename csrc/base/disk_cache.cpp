#include "base/disk_cache.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/warn.h"

namespace torch_lazy {
namespace {

struct Header {
  std::array<char, 8> magic;  // the format's name and version
  uint64_t bytes;             // that follow
  uint64_t digest_low, digest_high;
  bool operator==(const Header&) const = default;
};
constexpr std::array<char, 8> kMagic = {'T', 'L', 'A', 'Z', 'Y', 'D', 'C', '1'};

// An entry's name: the digest of its key. While it is written: that, and an end of its own.
constexpr size_t kNameLength = 32;
constexpr std::string_view kUnfinished = ".unfinished.";

// A process that died while it wrote leaves its file; after this time it is not being written any
// more.
constexpr time_t kSecondsToWrite = 3600;
// The whole directory is looked at each time such a part of its limit was written.
constexpr int64_t kPartsOfLimit = 8;

Header header_of(std::string_view value) {
  const XXH128_hash_t digest = XXH3_128bits(value.data(), value.size());
  return {kMagic, value.size(), digest.low64, digest.high64};
}

std::string file_name(std::string_view key) {
  const XXH128_hash_t digest = XXH3_128bits(key.data(), key.size());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

bool begins_as_entry(std::string_view name) {
  return name.size() >= kNameLength &&
         name.substr(0, kNameLength).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos;
}

bool is_entry(std::string_view name) {
  return name.size() == kNameLength && begins_as_entry(name);
}

bool is_unfinished(std::string_view name) {
  return begins_as_entry(name) && name.substr(kNameLength).starts_with(kUnfinished);
}

// Processes of two containers may have one number.
uint64_t random_number() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

std::string system_error(int number) {
  return std::error_code(number, std::system_category()).message();
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool opened() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  // Bytes read before the end of the file or an error.
  size_t read(char* to, size_t bytes) const {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got = ::read(descriptor_, to + done, bytes - done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

  bool write(const char* from, size_t bytes) const {
    while (bytes > 0) {
      const ssize_t put = ::write(descriptor_, from, bytes);
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return false;
      from += put;
      bytes -= static_cast<size_t>(put);
    }
    return true;
  }

  // Some file systems tell only here that the disk is full.
  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

// Why the directory cannot be used, or empty.
std::string open_directory(const std::filesystem::path& directory, int& descriptor,
                           std::pair<uint64_t, uint64_t>& identity) {
  std::error_code failed;
  std::filesystem::create_directories(directory.parent_path(), failed);
  if (failed) return failed.message();
  if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) return system_error(errno);
  descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return system_error(errno);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return system_error(errno);
  if (status.st_uid != ::geteuid()) return "it is another user's";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fmt::format("other users may write to it (mode {:o}, expected 700)",
                       status.st_mode & 07777U);
  identity = {status.st_dev, status.st_ino};
  return "";
}

}  // namespace

DiskCache::Counters::Counters(Metrics::ByName& counts)
    : refused(counts["refused"]),
      hit(counts["hit"]),
      miss(counts["miss"]),
      stored(counts["stored"]),
      evicted(counts["evicted"]),
      broken(counts["broken"]),
      not_stored(counts["not stored"]) {}

DiskCache::DiskCache(std::filesystem::path directory, int64_t byte_limit, Metrics::ByName& counts,
                     Says says)
    : directory_(std::move(directory)),
      says_(says),
      byte_limit_(byte_limit),
      written_since_look_(int64_t(random_number() % uint64_t(byte_limit / kPartsOfLimit + 1))),
      counters_(counts) {
  const std::string refused = open_directory(directory_, directory_fd_, identity_);
  if (refused.empty()) return;
  if (directory_fd_ >= 0) ::close(std::exchange(directory_fd_, -1));
  increment(counters_.refused);
  if (says_ != Says::kAll) return;
  warn_in_background(
      fmt::format("nothing is kept between processes: {} is not used, {}. "
                  "TORCH_LAZY_CACHE_DIR names another directory, TORCH_LAZY_CACHE_BYTES=0 asks "
                  "for none",
                  directory_.string(), refused));
}

// A program may have closed all its descriptors and opened others.
bool DiskCache::usable() const {
  struct stat status {};
  return directory_fd_ >= 0 && ::fstat(directory_fd_, &status) == 0 &&
         identity_ == std::pair<uint64_t, uint64_t>(status.st_dev, status.st_ino);
}

DiskCache::~DiskCache() {
  if (usable()) ::close(directory_fd_);
}

std::optional<std::string> DiskCache::get(std::string_view key) {
  if (!usable()) return std::nullopt;
  const std::string name = file_name(key);
  const File file(::openat(directory_fd_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  Header header{};
  struct stat status {};
  if (!file.opened() || ::fstat(file.descriptor(), &status) != 0) {
    increment(counters_.miss);
    return std::nullopt;
  }
  std::string value;
  const int64_t bytes = int64_t{status.st_size} - int64_t{sizeof header};
  if (bytes > 0 && bytes <= byte_limit_) value.resize(static_cast<size_t>(bytes));
  if (file.read(reinterpret_cast<char*>(&header), sizeof header) != sizeof header ||
      file.read(value.data(), value.size()) != value.size() || header != header_of(value)) {
    ::unlinkat(directory_fd_, name.c_str(), 0);
    increment(counters_.broken);
    say_once(said_broken_, "a file was broken and is replaced", name);
    return std::nullopt;
  }
  // The time of its last use, which reading alone does not tell on most systems.
  ::futimens(file.descriptor(), nullptr);
  increment(counters_.hit);
  return value;
}

void DiskCache::put(std::string_view key, std::string_view value) {
  if (!usable() || static_cast<int64_t>(value.size()) > byte_limit_) return;
  const std::string name = file_name(key);
  const std::string unfinished = fmt::format("{}{}{:016x}", name, kUnfinished, random_number());
  File file(::openat(directory_fd_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                     S_IRUSR | S_IWUSR));
  const bool made = file.opened();
  const Header header = header_of(value);
  if (!made || !file.write(reinterpret_cast<const char*>(&header), sizeof header) ||
      !file.write(value.data(), value.size()) || !file.close() ||
      ::renameat(directory_fd_, unfinished.c_str(), directory_fd_, name.c_str()) != 0) {
    const std::string why = system_error(errno);
    if (made) ::unlinkat(directory_fd_, unfinished.c_str(), 0);
    increment(counters_.not_stored);
    if (says_ == Says::kAll) say_once(said_not_stored_, "a file could not be written", why);
    return;
  }
  increment(counters_.stored);
  evict_if_over_limit(static_cast<int64_t>(sizeof header + value.size()));
}

void DiskCache::remove(std::string_view key) {
  if (usable()) ::unlinkat(directory_fd_, file_name(key).c_str(), 0);
}

void DiskCache::say_once(std::atomic<bool>& said, std::string_view what, std::string_view why) {
  if (!said.exchange(true))
    warn_in_background(fmt::format("cache {}: {}: {}", directory_.string(), what, why));
}

// Makes room for as much as is written until the next look.
void DiskCache::evict_if_over_limit(int64_t just_written) {
  if (written_since_look_.fetch_add(just_written) + just_written < byte_limit_ / kPartsOfLimit)
    return;
  written_since_look_ = 0;
  struct CloseDirectory {
    void operator()(DIR* opened) const { ::closedir(opened); }
  };
  const int again = ::openat(directory_fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseDirectory> opened(again < 0 ? nullptr : ::fdopendir(again));
  if (!opened) {
    if (again >= 0) ::close(again);
    return;
  }
  struct Entry {
    timespec used;
    int64_t bytes;
    std::string name;
  };
  std::vector<Entry> entries;
  int64_t bytes = 0;
  const time_t now = ::time(nullptr);
  while (const dirent* found = ::readdir(opened.get())) {
    struct stat status {};
    if (::fstatat(directory_fd_, found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
      continue;
    std::string name = found->d_name;
    if (is_unfinished(name) && status.st_mtim.tv_sec + kSecondsToWrite < now)
      ::unlinkat(directory_fd_, name.c_str(), 0);
    if (!is_entry(name)) continue;
    bytes += status.st_size;
    Entry& entry = entries.emplace_back();
    entry.used = status.st_mtim;
    entry.bytes = status.st_size;
    entry.name = std::move(name);
  }
  if (bytes <= byte_limit_) return;
  std::sort(entries.begin(), entries.end(), [](const Entry& one, const Entry& other) {
    return std::pair(one.used.tv_sec, one.used.tv_nsec) <
           std::pair(other.used.tv_sec, other.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (bytes <= byte_limit_ - byte_limit_ / kPartsOfLimit) break;
    if (::unlinkat(directory_fd_, entry.name.c_str(), 0) == 0) increment(counters_.evicted);
    bytes -= entry.bytes;
  }
}

std::string default_cache_directory() {
  const auto from = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::filesystem::path(text ? text : "");
  };
  // The specification of XDG_CACHE_HOME ignores paths that are relative.
  if (const auto caches = from("XDG_CACHE_HOME"); caches.is_absolute())
    return caches / "torch_lazy";
  if (const auto home = from("HOME"); home.is_absolute()) return home / ".cache" / "torch_lazy";
  return {};
}

}  // namespace torch_lazy
