// How long the passes of compiles took, behind torch.lazy.metrics()["compile_ns"].
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/api.h"

namespace torch_lazy {

// Adds the processor time of its life, on this thread, to that of the pass. Processor time, since a
// compile yields to everything else on the machine. The begin of a pass is a safe point for forks
// (base/fork.h): no lock may be held.
class PassTimer {
 public:
  explicit PassTimer(const char* pass);
  ~PassTimer();
  PassTimer(const PassTimer&) = delete;
  PassTimer& operator=(const PassTimer&) = delete;

 private:
  const char* const pass_;
  const int64_t start_;
};

// For work that another thread did.
void add_pass_time(const char* pass, int64_t nanoseconds);

// Nanoseconds by pass. Any thread.
TORCH_LAZY_MODULE_API std::map<std::string, int64_t> pass_times();
TORCH_LAZY_MODULE_API void reset_pass_times();

// Nanoseconds of all passes since the process began. Any thread.
int64_t total_pass_time();

}  // namespace torch_lazy
