#include "profile/event.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

namespace torch_lazy {
namespace {

// By EventKind.
constexpr std::array<const char*, 11> kKindNames{"sync",         "flush",         "run",   "kernel",
                                                 "library call", "command",       "copy",  "check",
                                                 "compile",      "guard failure", "window"};
static_assert(kKindNames.size() == size_t(EventKind::kWindow) + 1);

// " (train.py:41)", or nothing where no line is known.
std::string in_parentheses(const std::vector<LocationId>& lines) {
  if (lines.empty() || lines.front() == kNoLocation) return {};
  const SourceLocation line = location(lines.front());
  return fmt::format(" ({}:{})", line.file.substr(line.file.rfind('/') + 1), line.line);
}

}  // namespace

const char* name(EventKind kind) {
  return kKindNames[size_t(kind)];
}

std::string range_name(const ProfileEvent& event) {
  switch (event.kind) {
    case EventKind::kSync:
      return fmt::format("torch_lazy::sync ({})", event.name);
    case EventKind::kFlush:
      return fmt::format("torch_lazy::flush ({})", event.name);
    case EventKind::kRun:
    case EventKind::kWindow:
      return fmt::format("torch_lazy::{}{}", event.name, in_parentheses(event.lines));
    case EventKind::kKernel:
      return fmt::format("torch_lazy::{}", event.name);
    case EventKind::kLibraryCall:
      return fmt::format("torch_lazy::library_call {}", event.name);
    case EventKind::kCommand:
      return fmt::format("torch_lazy::command {}", event.name);
    case EventKind::kCopy:
      return "torch_lazy::copy";
    case EventKind::kCheck:
      return "torch_lazy::check";
    case EventKind::kCompile:
      return fmt::format("torch_lazy::compile{}", in_parentheses(event.lines));
    case EventKind::kGuardFailure:
      return fmt::format("torch_lazy::guard_failed{}", in_parentheses(event.lines));
  }
  return {};
}

}  // namespace torch_lazy
