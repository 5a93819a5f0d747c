// The memory that code outside of kernels reads its constants from.
#pragma once

namespace torch_lazy::compiler {

// Maps the pages that the function's instructions refer to by their own address, as far as the
// machine and the system can tell. For functions of libraries, whose constants lie in files.
//
// A vector instruction may read a constant for none of its lanes: of AVX-512's, one with an empty
// mask. If the page was never read in this process, nobody maps it then, and the processor finds
// out each time, slowly, that there is nothing to fail: erf of doubles took 18 ns an element where
// it takes 3.
void map_constants_of(const void* function);

}  // namespace torch_lazy::compiler
