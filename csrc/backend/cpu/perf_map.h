// Tells Linux' perf the names of kernels, by the file that it reads for JIT code:
// https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt
#pragma once

#include <cstddef>
#include <string>

namespace torch_lazy {

// Appends a kernel to /tmp/perf-<pid>.map where `config.perf_map` is set. `bytes`: at least those
// of its code. A file that cannot be written is warned about once. Any thread.
void add_to_perf_map(const void* code, size_t bytes, const std::string& name);

}  // namespace torch_lazy
