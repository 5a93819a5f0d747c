// Which line of the program the calling thread executes.
#pragma once

#include <string>
#include <vector>

#include "base/api.h"
#include "tape/source_location.h"

namespace torch_lazy {

// The innermost Python frame of this thread that is not library code (see set_library_prefixes);
// the outermost frame if all are library code; kNoLocation on a thread without Python frames.
// Takes the GIL on a Python whose frames cannot be read without it (before 3.11, from 3.14 on), so
// no lock may be held that a holder of the GIL waits for. The calling thread must be inside a C
// call made by its own innermost frame (every operator call is), so that nothing else can change
// its frame stack.
LocationId current_location();

// Directories, without trailing slash, whose files are library code: torch, torch_lazy, the
// standard library. Any site-packages or dist-packages directory counts as library without being
// named. Locations already given out keep their meaning.
TORCH_LAZY_MODULE_API void set_library_prefixes(std::vector<std::string> prefixes);

}  // namespace torch_lazy
