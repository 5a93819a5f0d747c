// Bytes kept in a directory between processes, found again by the text that they were made from.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics.h"

namespace torch_lazy {

// Every entry is a file: a header with the digest of what follows, then the bytes. It is written
// under another name and renamed, so that any number of processes may share the directory, and one
// that dies leaves nothing that could be taken for an entry.
//
// What fails is never the caller's business: an entry that cannot be read is not there, one that
// cannot be written is not kept. Each kind of failure is warned about once in the life of the
// object and counted in `counts`, as "refused", "broken" and "not stored".
//
// Thread-safe, and without a lock once it is made: a forked child may go on using it. Other files
// in the directory are left alone.
class DiskCache {
 public:
  // What is warned about. Of several caches in one place the first says what they have in common:
  // that it cannot be used, or written to.
  enum class Says : uint8_t { kAll, kWhatIsBroken };

  // Makes the directory where there is none. It is refused where another user than the process's
  // own could write to it: entries may be machine code. `byte_limit`: from there on the entries
  // used longest ago are removed, by who happens to look; a limit lower than before is met when
  // about an eighth of it was written.
  DiskCache(std::filesystem::path directory, int64_t byte_limit,
            Metrics::ByName& counts = metrics().disk_cache, Says says = Says::kAll);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // False where the directory was refused.
  bool usable() const;

  std::optional<std::string> get(std::string_view key);
  void put(std::string_view key, std::string_view value);

  // Forgets the entry, as one whose bytes turned out not to serve.
  void remove(std::string_view key);

 private:
  void say_once(std::atomic<bool>& said, std::string_view what, std::string_view why);
  void evict_if_over_limit(int64_t just_written);

  const std::filesystem::path directory_;
  const Says says_;
  const int64_t byte_limit_;
  // The directory itself, whatever its name leads to later. -1 where it was refused.
  int directory_fd_ = -1;
  std::pair<uint64_t, uint64_t> identity_;  // its device and inode
  // What this process wrote since it last looked at the whole directory. Starts anywhere up to what
  // makes it look: of many processes that write a little, some look.
  std::atomic<int64_t> written_since_look_;
  // Found once, because that takes a lock.
  struct Counters {
    explicit Counters(Metrics::ByName& counts);
    Metrics::Counter &refused, &hit, &miss, &stored, &evicted, &broken, &not_stored;
  } counters_;
  std::atomic<bool> said_broken_{false}, said_not_stored_{false};
};

// Where caches are unless the user says otherwise: $XDG_CACHE_HOME/torch_lazy, else
// ~/.cache/torch_lazy. Empty where there is no home.
std::string default_cache_directory();

}  // namespace torch_lazy
