// What the recorder needs to know of an operator, looked up once per operator and then by pointer.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ops/effects.h"
#include "ops/index_rule.h"

namespace torch_lazy {

// What a result depends on beside sizes, strides and values.
enum class OffsetNeed : uint8_t {
  kNone,       // nothing
  kRelative,   // how what it writes lies to other tensors over the same storage
  kOfWritten,  // the offsets of what it writes, too: it changes their metadata
  kOfAll,      // the offsets of its arguments: as_strided
};

// What every recorded call reads comes first and fits a cache line: in a script that does not
// repeat, each operator is fetched from memory again.
struct alignas(64) OperatorInfo {
  uint64_t id;             // XXH3 of `name`: stable across processes, stands on the tape
  const Effects* effects;  // never null; lives as long as the process

  // May stand in a deferred window: effects known, returns tensors only, metadata of the outputs
  // depends on the metadata of the inputs alone, no random numbers.
  bool deferrable;
  // As deferrable, but only when no argument is a mask: with one the output's size depends on data.
  bool dynamic_with_mask;
  // Makes memory whose contents are undefined (empty, empty_strided): runs at the call.
  bool uninitialized;
  // Draws random numbers: runs at the call, so that generators advance in eager's order.
  bool random;
  // May change sizes, strides, dtype or storage of an argument (t_, resize_, out= that resizes).
  bool may_rebind;
  // Makes memory and fills it with one value (zeros, full_like).
  bool fills;
  // Schema arguments, one bit each, whose numbers may be dynamic; see
  // ops/dynamic_scalar_arguments.h.
  uint32_t dynamic_scalar_arguments;
  bool compares;  // see is_comparison() there
  // Accepts tensors on the CPU beside lazy ones, whatever their size.
  bool takes_cpu_tensors;
  // A composite that PyTorch would take apart above version counting: each tensor it writes counts
  // once (_foreach_add_). Elsewhere the ADInplaceOrView kernel has counted already.
  bool counts_versions;
  IndexRule index_rule;
  bool writes;  // to an argument
  OffsetNeed offsets;
  bool picks_part;  // returns a view that begins where a number says: slice, select, diagonal
  // By return: the schema argument that is returned (in-place and out= variants), or -1.
  std::vector<int> returned_arguments;

  c10::OperatorHandle handle;
  std::string name;  // "aten::add.Tensor"
};

// Never fails; the reference stays valid for the life of the process. Thread safe.
const OperatorInfo& operator_info(const c10::OperatorHandle& handle);

// Looks up by qualified name ("aten::add", "Tensor"); raises when there is no such operator.
const OperatorInfo& operator_info(const char* name, const char* overload);

}  // namespace torch_lazy
