#include "backend/cuda/index_failures.h"

#include <c10/util/Exception.h>

#include <atomic>
#include <cstdint>
#include <exception>

#include "backend/cuda/driver.h"
#include "backend/late_failure.h"

namespace torch_lazy::cuda {
namespace {

using Word = std::atomic_ref<uint64_t>;

// Null until there is one.
constinit std::atomic<uint64_t*> failure_word{nullptr};

void raise_index_failure() {
  const uint64_t ticket = Word(*failure_word.load()).exchange(0);
  if (ticket == 0) [[likely]]
    return;
  if (is_retracted(ticket - 1)) return;
  try {
    TORCH_CHECK_INDEX(false, "index out of range in self");
  } catch (const c10::Error&) {
    raise_late(ticket - 1, std::current_exception());
  }
}

uint64_t* make_word() {
  const DuringCaptures relaxed;
  void* word = nullptr;
  check(driver().allocate_host(&word, sizeof(uint64_t), kPortable | kDeviceMapped),
        "there is no memory for failures of kernels");
  return new (word) uint64_t(0);
}

}  // namespace

void* index_failure_word() {
  static uint64_t* const made = [] {
    uint64_t* const word = make_word();
    failure_word = word;
    set_late_failure_finder(&raise_index_failure);
    return word;
  }();
  return made;
}

}  // namespace torch_lazy::cuda
