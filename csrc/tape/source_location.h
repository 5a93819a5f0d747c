// Where an operation came from: recorded as a number, and resolved to a line when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/api.h"

namespace torch_lazy {

// The number of a code object (upper 32 bits) and the offset of an instruction (lower 32 bits).
// Recording one looks at no line table. It stays good as long as its code object is remembered.
using LocationId = uint64_t;
constexpr LocationId kNoLocation = 0;

struct SourceLocation {
  std::string file;      // co_filename as Python has it, UTF-8
  int line = 0;          // 1-based
  int column = -1;       // 0-based byte offset in the line; -1 where Python kept no columns
  std::string function;  // qualified name
};

// What a code object knows of its lines: a copy, because the code object may be gone, and another
// at its address, by the time that a line is asked for.
struct CodeLines {
  std::string file;
  std::string function;
  int first_line = 0;
  std::string line_table;  // co_linetable; empty where the offset of a location is its line

  bool operator==(const CodeLines&) const = default;
};

// The latest code objects are remembered: at most so many of them, and of bytes, however much code
// a program makes.
constexpr size_t kMostCodes = 8192, kMostCodeBytes = size_t{16} << 20;

// The number of the code object from now on, and of all that are alike in this: a notebook's cell
// that is run again is the same program. Numbers are never used for other code. What is met again
// behind as many others as are remembered has another number.
uint32_t remember_code(CodeLines code);
// Whether the code object with this number is among the latest.
bool is_remembered(uint32_t code);

inline LocationId make_location(uint32_t code, int offset) {
  return uint64_t{code} << 32 | static_cast<uint32_t>(offset);
}

// The location's code object stays remembered while somebody holds this; null where it is not any
// more.
[[nodiscard]] std::shared_ptr<const CodeLines> keep_location(LocationId id);

// File "<unknown>" for kNoLocation, and where the code object is no longer remembered.
TORCH_LAZY_MODULE_API SourceLocation location(LocationId id);

// "file.py:12:8", or "<unknown>".
std::string to_string(LocationId id);

}  // namespace torch_lazy
