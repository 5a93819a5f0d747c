#include "profile/running_window.h"

#include <algorithm>
#include <cstddef>

namespace torch_lazy {

RunningWindow::RunningWindow(c10::ArrayRef<Tape::Entry> entries, c10::ArrayRef<uint32_t> operations,
                             bool shown)
    : entries_(entries), operations_(operations), shown_(shown), outer_(of_thread_) {
  of_thread_ = this;
}

RunningWindow::~RunningWindow() {
  of_thread_ = outer_;
}

const Tape::Entry* RunningWindow::entry(int64_t node) const {
  if (node < 0) return nullptr;
  auto operation = size_t(node);
  if (!operations_.empty()) {
    if (operation >= operations_.size()) return nullptr;
    operation = operations_[operation];
  }
  return operation < entries_.size() ? &entries_[operation] : nullptr;
}

std::vector<LocationId> lines_of_nodes(c10::ArrayRef<int64_t> nodes) {
  std::vector<LocationId> lines;
  const RunningWindow* const running = RunningWindow::of_thread_;
  if (!running) return lines;
  for (const int64_t node : nodes) {
    const Tape::Entry* const entry = running->entry(node);
    if (entry && std::find(lines.begin(), lines.end(), entry->location) == lines.end())
      lines.push_back(entry->location);
  }
  return lines;
}

}  // namespace torch_lazy
