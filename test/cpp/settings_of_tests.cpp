// Settings that all tests run with.

#include "base/config.h"

namespace torch_lazy {
namespace {

// Graphs after every pass, and loops before they are printed.
[[maybe_unused]] const bool kVerifiesPasses = config().verify_passes = true;

// What a test compiles is what it runs, and nothing is kept on disk.
[[maybe_unused]] const bool kMeasuresNothing = config().measured_choice = false;
[[maybe_unused]] const bool kRemembersNothing = config().remember_traces = false;

}  // namespace
}  // namespace torch_lazy
