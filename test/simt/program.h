// CUDA C++ as it was printed, compiled for this machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simt/module_layout.h"

namespace torch_lazy::simt {

class Program {
 public:
  // Each source once a process. Raises std::runtime_error with the compiler's messages.
  static std::shared_ptr<const Program> compile(const std::string& source);

  const Module& module() const { return *module_; }
  // Raises std::invalid_argument where there is no such kernel.
  const KernelEntry& kernel(const std::string& name) const;
  // "line 12: x[i] = 0;", of the source as it was given.
  std::string line(const Site& site) const;

 private:
  Program(const std::string& source, const Module* module);

  std::vector<std::string> lines_;
  const Module* module_;  // in code that is never unloaded
};

}  // namespace torch_lazy::simt
