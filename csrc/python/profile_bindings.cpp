#include "python/profile_bindings.h"

#include <pybind11/stl.h>

#include <stdexcept>
#include <string>
#include <unordered_map>

#include "profile/event_log.h"

namespace py = pybind11;

namespace torch_lazy {
namespace {

int64_t nanoseconds(ProfileEvent::Clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

// (file, line, column, function); a profile of many steps names the same lines again and again.
class Lines {
 public:
  const py::tuple& operator[](LocationId id) {
    const auto [found, is_new] = lines_.try_emplace(id);
    if (is_new) {
      const SourceLocation line = location(id);
      found->second = py::make_tuple(line.file, line.line, line.column, line.function);
    }
    return found->second;
  }

 private:
  std::unordered_map<LocationId, py::tuple> lines_;
};

py::tuple as_tuple(const ProfileEvent& event, Lines& known) {
  py::list lines;
  for (const LocationId line : event.lines)
    if (line != kNoLocation) lines.append(known[line]);
  return py::make_tuple(name(event.kind), event.name, nanoseconds(event.begin),
                        nanoseconds(event.end), event.thread, py::tuple(lines), event.operations,
                        event.bytes, event.reason, event.graph);
}

// The fields of torch_lazy.profiling.Event in their order, and how many events were left out.
py::tuple stop() {
  EventLog log;
  {
    const py::gil_scoped_release released;
    log = stop_event_log();
  }
  Lines known;
  py::list events;
  for (const ProfileEvent& event : log.events) events.append(as_tuple(event, known));
  return py::make_tuple(events, log.left_out);
}

}  // namespace

void bind_profile(py::module_& module) {
  module.def("start_profile", [] {
    if (!start_event_log())
      throw std::runtime_error(
          "torch.lazy.profile() was entered while another one is on: there is one log for all "
          "threads of a process, so leave the other one first");
  });
  module.def("stop_profile", &stop);
}

}  // namespace torch_lazy
