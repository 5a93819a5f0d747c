#include "base/debug.h"

#include <cstdio>

namespace torch_lazy {

void debug_print(const std::string& message) {
  const std::string line = "[torch_lazy] " + message + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace torch_lazy
