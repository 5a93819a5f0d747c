#include "runtime/compile_watch.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "base/config.h"
#include "base/fork.h"
#include "base/metrics.h"
#include "base/warn.h"

namespace torch_lazy {

struct CompileWatch::State {
  std::mutex mutex;  // guards what is below; before the lock of forks
  std::condition_variable changed;
  bool ended = false;
  std::optional<OverdueWork> overdue;

  // Returns whether the compile has taken all of the time.
  bool wait(std::chrono::seconds limit) {
    std::unique_lock<std::mutex> lock(mutex);
    if (changed.wait_for(lock, limit, [&] { return ended; })) return false;
    overdue.emplace();
    return true;
  }
};

CompileWatch::CompileWatch(const std::string& backend, const std::string& graph) {
  const std::chrono::seconds limit(config().compile_seconds.load());
  if (limit.count() == 0) return;
  state_ = std::make_shared<State>();
  // Not joined: it may be waiting for the interpreter in order to warn when the compile ends.
  try {
    std::thread([state = state_, limit, backend, graph] {
      if (!state->wait(limit)) return;
      if (increment(metrics().fallbacks["compile takes long"]) > 1) return;
      warn_in_background(
          fmt::format("backend '{}' has been compiling graph {} for {} s: its windows run eagerly "
                      "until it is done, and no other is compiled meanwhile; "
                      "torch.lazy.config.compile_seconds is the time after which this is said",
                      backend, graph, limit.count()));
    }).detach();
  } catch (const std::system_error&) {
    state_ = nullptr;  // no thread is to be had: the compile goes unwatched
  }
}

CompileWatch::~CompileWatch() {
  if (!state_) return;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->ended = true;
  state_->overdue.reset();
  state_->changed.notify_all();
}

}  // namespace torch_lazy
