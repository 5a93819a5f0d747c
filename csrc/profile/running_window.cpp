#include "profile/running_window.h"

#include <algorithm>
#include <cstddef>

namespace torch_lazy {

RunningWindow::RunningWindow(const Tape& tape, c10::ArrayRef<uint32_t> operations)
    : tape_(tape), operations_(operations), outer_(of_thread_) {
  of_thread_ = this;
}

RunningWindow::~RunningWindow() {
  of_thread_ = outer_;
}

std::vector<LocationId> lines_of_nodes(c10::ArrayRef<int64_t> nodes) {
  std::vector<LocationId> lines;
  const RunningWindow* const running = RunningWindow::of_thread_;
  if (!running) return lines;
  for (const int64_t node : nodes) {
    auto operation = size_t(node);
    if (!running->operations_.empty()) {
      if (operation >= running->operations_.size()) continue;
      operation = running->operations_[operation];
    }
    if (operation >= running->tape_.size()) continue;
    const LocationId line = running->tape_.entry(operation).location;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  return lines;
}

}  // namespace torch_lazy
