// Which loads and stores of a kernel its lanes can make by packets, or a GPU's threads for each
// other. `varying` is of the kernel's expressions, see loop_analysis.h.
#pragma once

#include <cstddef>
#include <vector>

#include "codegen/loop_analysis.h"
#include "codegen/loop_ir.h"

namespace torch_lazy::codegen {

// Whether a value that varies along these dimensions varies along the lanes.
bool runs_along(const Kernel& kernel, Dimensions varying);
// Whether an index says of each lane where it reads or writes.
bool has_index_along_lanes(const Kernel& kernel, const Access& access,
                           const std::vector<Dimensions>& varying);

// Whether an index says of any element where it is read or written.
bool has_indices(const Kernel& kernel);

// Elements that lie one after the other along the lanes: what a packet can be loaded or stored of.
bool is_packet_load(const Kernel& kernel, ExprId id, const std::vector<Dimensions>& varying);
bool is_packet_store(const Kernel& kernel, const Store& store,
                     const std::vector<Dimensions>& varying);

// A load that goes through shared memory where `dimension` is the transposed one.
bool is_transposed_load(const Kernel& kernel, ExprId id, size_t dimension,
                        const std::vector<Dimensions>& varying);

// A load that a CPU's lanes make far apart and that is contiguous along `dimension`: squares of it
// can be transposed in registers.
bool is_square_load(const Kernel& kernel, ExprId id, size_t dimension);

}  // namespace torch_lazy::codegen
