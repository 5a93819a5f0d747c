// TORCH_LAZY_DEBUG=1..5: each level shows one layer more on stderr.
#pragma once

#include <string>

namespace torch_lazy {

enum DebugLevel { kDebugWindows = 1, kDebugGraphs, kDebugPasses, kDebugKernels, kDebugOperations };

// Whether compiles check graphs after every pass and loops before printing them: where the setting
// `verify_passes` is on, and wherever passes are shown.
bool verifies_passes();

// One message, with a newline added. Never raises: the stream may have no reader.
void debug_print(const std::string& message);

}  // namespace torch_lazy
