// Which Python line an operation came from: found without the GIL, kept as a 32-bit id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace torch_lazy {

// Index into a global, append-only table of source locations. Ids are never reused.
using LocationId = uint32_t;
constexpr LocationId kNoLocation = 0;

struct SourceLocation {
  std::string file;      // co_filename as Python has it, UTF-8
  int line = 0;          // 1-based
  int column = -1;       // 0-based byte offset in the line; -1 where Python kept no columns
  std::string function;  // qualified name
};

// The innermost Python frame of this thread that is not library code (see set_library_prefixes);
// the outermost frame if all are library code; kNoLocation on a thread without Python frames.
// Neither takes nor needs the GIL, unless locating_takes_gil(). The calling thread must be inside a
// C call made by its own innermost frame (every operator call is), so that nothing else can change
// its frame stack.
LocationId current_location();

// A number for where this thread's Python frames stand, all of them: much cheaper than a location
// of code not seen before, and equal when a program comes by the same way again, be it in code made
// anew from the same source. 0 where frames cannot be read. As above, without the GIL.
uint64_t call_path();

// On a Python whose frames cannot be read without it.
bool locating_takes_gil();

// The reference stays valid for the life of the process.
const SourceLocation& location(LocationId id);

// "file.py:12:8", or "<unknown>" for kNoLocation.
std::string to_string(LocationId id);

// Directories, without trailing slash, whose files are library code: torch, torch_lazy, the
// standard library. Any site-packages or dist-packages directory counts as library without being
// named. Locations already given out keep their meaning.
void set_library_prefixes(std::vector<std::string> prefixes);

}  // namespace torch_lazy
