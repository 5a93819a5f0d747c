#include "trace/run_failure.h"

#include <c10/util/Exception.h>

#include "backend/late_failure.h"
#include "base/config.h"
#include "base/metrics.h"
#include "base/warn.h"
#include "ops/operator_info.h"

namespace torch_lazy {

std::exception_ptr with_location(const std::exception_ptr& error, const Tape::Entry& entry) {
  try {
    std::rethrow_exception(error);
  } catch (c10::Error& raised) {
    name_operation(raised, "deferred operation " + entry.op->name, to_string(entry.location));
    return std::current_exception();
  } catch (...) {
    return std::current_exception();
  }
}

std::exception_ptr device_error(const std::exception_ptr& error, c10::Device device,
                                const Tape::Entry& operation) {
  if (device.is_cpu()) return nullptr;
  try {
    std::rethrow_exception(error);
  } catch (const c10::OutOfMemoryError&) {
    return nullptr;
  } catch (const RefusedWork&) {
    return nullptr;
  } catch (c10::Error& raised) {
    if (config().blocking) return with_location(error, operation);
    if (names_operation(raised)) return error;
    raised.add_context("told by device " + device.str() + ", perhaps of an earlier operation");
    raised.add_context("with TORCH_LAZY_BLOCKING=1 its operation and line are named");
    return std::current_exception();
  } catch (...) {
    return error;
  }
}

void note_failure_of_executable(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    if (increment(metrics().fallbacks["window run again"]) == 1 && config().warn_fallbacks)
      warn_in_background(
          "what a backend compiled of a window failed and its operations did not, which were run "
          "instead: " +
          first_line(error));
  } catch (...) {
    increment(metrics().fallbacks["window run again"]);
  }
}

}  // namespace torch_lazy
