// From a fusion group to loop IR: the one place that decides loops, axes and accesses.
#pragma once

#include <optional>
#include <vector>

#include "codegen/loop_ir.h"
#include "codegen/prelude.h"
#include "passes/fusion_group.h"

namespace torch_lazy::codegen {

// What a kernel's pointer argument is bound to.
struct BufferBinding {
  static constexpr ValueId kPartial = -2;  // the results of the chunks of a long reduction
  ValueId value = kNoId;  // whose memory, from the start of its own block (an input's data pointer)
  bool written = false;
  // Not memory but a word of the launch, for a check of indices that the kernel makes: where the
  // device notes that it has failed, and what it notes (see Launcher::failure_word()).
  enum class Word : uint8_t { kNone, kFailures, kTicket };
  Word word = Word::kNone;
  int64_t origin = 0;  // of a ticket: the operation whose indices are checked
};

struct LoweredKernel {
  Kernel kernel;
  // Of each instance of the kernel, one after the other:
  std::vector<BufferBinding> buffers;  // of kernel.buffers
  std::vector<int64_t> sizes;          // values of the integer slots
  std::vector<double> numbers;         // values of the numbers' slots
  // Where there are several instances, how many work items each has with those before it.
  std::vector<int64_t> ends;
  int64_t work_items = 0;     // of all
  double work_item_cost = 0;  // in elements of simple arithmetic, for the grain of parallel loops
  int64_t partial_elements = 0;  // of kPartial buffers, each

  // Of the first instance.
  int64_t number(const Size& size) const {
    return size.slot ? sizes[size_t(size.value)] : size.value;
  }
  // Of a work item, over all reduction dimensions.
  int64_t reduction_steps() const {
    int64_t steps = 1;
    for (const Size& extent : kernel.reduction) steps *= number(extent);
    return steps;
  }
};

// A group that cannot be one kernel: `node` reads another member in a way that no loop order
// serves, such as what follows from a reduction at another point than its own.
struct LowerFailure {
  NodeId node;
};

struct LowerContext {
  const CoreGraph& graph;
  // By value: where its elements lie within the memory it is bound to. Groups read and write by
  // these; they equal the value's own type except where a plan placed it (in a part of a cat).
  const std::vector<Layout>& layouts;
  // By graph input: elements from the start of its storage to its first element.
  const std::vector<int64_t>& input_offsets;
  int lanes = 16;   // of the target's vectors
  int threads = 1;  // to cut long reductions for
  Target::Kind target = Target::Kind::kCpu;
  int64_t shared_bytes = 48 << 10;  // of a GPU's block, at most

  // The lanes are threads, which do not sort elements among their registers.
  bool is_cuda() const { return target == Target::Kind::kCuda; }
};

// One kernel, or two where one long reduction is cut into chunks (the second reduces the first's
// partial results). None for a group that stores nothing: its gathers are there for the error that
// an index out of range raises, which the plan checks. `failure` is set where there can be none.
std::vector<LoweredKernel> lower(const LowerContext& context, const FusionGroup& group,
                                 std::optional<LowerFailure>& failure);

}  // namespace torch_lazy::codegen
