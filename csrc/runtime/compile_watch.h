// Notices compiles that take too long.
#pragma once

#include <memory>
#include <string>

namespace torch_lazy {

// The scope of one compile by a backend. After config().compile_seconds it is counted and, the
// first of a process, warned about; from then on neither a fork nor the end of the process waits
// for it. It may still end, and is used then: some backends take minutes.
class CompileWatch {
 public:
  CompileWatch(const std::string& backend, const std::string& graph);
  ~CompileWatch();
  CompileWatch(const CompileWatch&) = delete;
  CompileWatch& operator=(const CompileWatch&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with a thread that sleeps meanwhile; null without limit
};

}  // namespace torch_lazy
