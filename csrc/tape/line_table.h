// The line table that Python 3.11 and later keep with a code object (co_linetable).
#pragma once

#include <string_view>

namespace torch_lazy {

struct LineAndColumn {
  int line = 0;     // 1-based
  int column = -1;  // 0-based byte offset in the line; -1 where Python kept no columns
};

// Where the instruction at `offset`, in bytes, came from; `first_line` where it has no line, as
// instructions that Python added have none.
LineAndColumn line_at(std::string_view line_table, int first_line, int offset);

}  // namespace torch_lazy
