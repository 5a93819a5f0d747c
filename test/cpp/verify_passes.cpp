// All tests run with graphs verified after every pass and loops before they are printed.

#include "base/config.h"

namespace torch_lazy {
namespace {

[[maybe_unused]] const bool kVerifiesPasses = config().verify_passes = true;

}  // namespace
}  // namespace torch_lazy
