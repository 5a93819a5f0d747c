// What operators warn of while they run: kept as a number, so that an operation that is deferred
// gives the warnings where it is called, and not where its window runs.
#pragma once

#include <c10/util/Exception.h>

#include <cstdint>
#include <vector>

namespace torch_lazy {

// The number of warnings that one operation gave, in order; 0 where there were none. Equal warnings
// have equal numbers, and numbers stay good for the life of the process.
using WarningsId = uint32_t;
constexpr WarningsId kNoWarnings = 0;

// Takes a leaf lock.
WarningsId remember_warnings(const std::vector<c10::Warning>& warnings);
// Gives them to the caller's handler. Must be called without the recording lock: a handler may take
// the GIL.
void give_warnings(WarningsId warnings);

// While it lives, this thread's warnings are noted in `into`, and are given to the handler that was
// there before.
class CollectWarnings final : public c10::WarningHandler {
 public:
  explicit CollectWarnings(std::vector<c10::Warning>& into)
      : into_(into), before_(c10::WarningUtils::get_warning_handler()) {
    c10::WarningUtils::set_warning_handler(this);
  }
  // PyTorch's guard would ask for the handler once more, at every operation that runs at the call.
  ~CollectWarnings() override { c10::WarningUtils::set_warning_handler(before_); }
  CollectWarnings(const CollectWarnings&) = delete;
  CollectWarnings& operator=(const CollectWarnings&) = delete;
  void process(const c10::Warning& warning) override;

 private:
  std::vector<c10::Warning>& into_;
  c10::WarningHandler* const before_;
};

// While it lives, this thread gives no warning that is remembered: who runs deferred operations
// need not repeat what was given when they were called.
class SilenceRememberedWarnings final : public c10::WarningHandler {
 public:
  SilenceRememberedWarnings() : before_(*c10::WarningUtils::get_warning_handler()), guard_(this) {}
  void process(const c10::Warning& warning) override;

 private:
  c10::WarningHandler& before_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace torch_lazy
