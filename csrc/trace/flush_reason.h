// Why windows end, and how they had fared by then; metrics and debug output print both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tape/source_location.h"

namespace torch_lazy {

struct OperatorInfo;

enum class FlushReason : uint8_t {
  // Sync points: a value or memory is needed now.
  kOperator,  // an operator that cannot stand in a window; printed by its name
  kCopyToCpu,
  kSynchronize,
  kStorageNeeded,     // the memory of a pending storage
  kSetStorage,        // set_ on a storage of the window
  kStorageTakenOver,  // a tensor shares a pending storage that the tape has no name for
  kExport,            // memory is about to be shared with other libraries
  kExportedMemory,    // an operation on memory that is shared
  // Borders, where the next operation belongs to another window.
  kBackwardEnds,
  kGlobalState,
  kOtherStream,
  // The recorder's own decisions.
  kOperationsLimit,
  kBytesLimit,
  kPeriod,
  kBranch,
  kChange,
  // What happens to a window.
  kOtherThread,
  kThreadEnds,
  kOperationRaised,
};

// See trace/seams.h.
constexpr bool is_seam(FlushReason reason) {
  return reason == FlushReason::kBranch || reason == FlushReason::kChange;
}

// So many operations are worth a window of their own: in front of a branch, and between operations
// that are given other sizes each time.
constexpr size_t kLeastOfAWindow = 8;

// One end of a window.
struct Flush {
  FlushReason reason;
  const OperatorInfo* op = nullptr;  // of kOperator
  // Of a sync point: whether it is profiled, and by which line it waits.
  bool at_sync = false, profiled = false;
  LocationId location = kNoLocation;

  static Flush by(const OperatorInfo& op) { return {FlushReason::kOperator, &op}; }
  // Why the recorder flushed by itself, where the next window of the same program will be flushed
  // too.
  std::optional<FlushReason> automatic() const {
    const bool own = reason == FlushReason::kOperationsLimit ||
                     reason == FlushReason::kBytesLimit || reason == FlushReason::kPeriod ||
                     is_seam(reason);
    return own ? std::optional(reason) : std::nullopt;
  }
  // Valid for the life of the process, and always at the same address.
  std::string_view name() const;
};

enum class WindowState : uint8_t {
  kCold,         // ran eagerly, recorded for the first time
  kWarm,         // ran eagerly, recorded before, if only by an earlier process
  kHot,          // run by its executable
  kGuardFailed,  // left the known traces, or was flushed where no executable serves
};
std::string_view name(WindowState state);

}  // namespace torch_lazy
