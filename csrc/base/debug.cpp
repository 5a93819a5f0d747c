#include "base/debug.h"

#include <cstdio>

#include "base/config.h"

namespace torch_lazy {

bool verifies_passes() {
  return config().verify_passes || config().debug >= kDebugPasses;
}

void debug_print(const std::string& message) {
  const std::string line = "[torch_lazy] " + message + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace torch_lazy
