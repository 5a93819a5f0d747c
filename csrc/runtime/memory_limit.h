// The memory that the process may use.
#pragma once

#include <cstdint>
#include <filesystem>

namespace torch_lazy {

// In bytes: of the machine, or of the container or service that the process is in where that is
// allowed less. `root`: of the file system, for control groups.
uint64_t memory_limit(const std::filesystem::path& root = "/");

}  // namespace torch_lazy
