// What is kept on disk for the next process besides kernels.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/disk_cache.h"

namespace torch_lazy {

// A folder beside the kernels', made when it is first asked for. Global to the process, and never
// destroyed. Thread-safe and without a lock: making it may warn, and so take the GIL.
class DiskStore {
 public:
  constexpr DiskStore(const char* folder, int64_t most_bytes)
      : folder_(folder), most_bytes_(most_bytes) {}

  // Null where nothing is to be kept. What it finds is counted with no kernels, which also say what
  // is wrong with the place.
  DiskCache* get();

 private:
  const char* folder_;
  int64_t most_bytes_;
  std::atomic<DiskCache*> cache_{nullptr};
};

// Which build of this library it is, and of which PyTorch: another may make something else of the
// same program.
const std::string& this_build();

}  // namespace torch_lazy
