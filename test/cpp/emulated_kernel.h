// Runs a kernel of the loop IR as printed for CUDA, unmodified, in the emulator.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "codegen/launch_arguments.h"
#include "codegen/printer.h"
#include "codegen/thread_loop.h"
#include "loop_arguments.h"
#include "simt/launch.h"

namespace torch_lazy::codegen {

// Of a block, as GPUs of data centers have.
constexpr int64_t kMostSharedBytes = 227 << 10;

struct EmulatedRun {
  std::vector<Elements> buffers;  // what they hold afterwards
  std::vector<simt::Report> reports;
};

inline bool is_loaded(const Kernel& kernel, size_t buffer) {
  for (const Expr& expr : kernel.exprs) {
    if (expr.op == Op::kLoad && expr.buffer == buffer) return true;
  }
  return false;
}

// In two launches, as long as there is something to share out. Buffers are aligned to their
// elements and no more, unless `arguments` say that they are.
inline EmulatedRun emulated(const Kernel& kernel, KernelArguments arguments, simt::Dim3 grid,
                            simt::Dim3 block) {
  const PrintedKernel printed = print_kernel(kernel, {.kind = Target::Kind::kCuda});
  const auto program = simt::Program::compile(printed.source);
  simt::DeviceMemory memory;
  std::vector<int64_t> packed;  // pointers, sizes and numbers one after the other
  const auto pack = [&](auto value) {
    static_assert(sizeof(value) == sizeof(int64_t));
    std::memcpy(&packed.emplace_back(), &value, sizeof(value));
  };
  std::vector<void*> pointers;
  for (size_t i = 0; i < arguments.buffers.size(); ++i) {
    const Elements& elements = arguments.buffers[i];
    void* const at =
        memory.allocate(elements.bytes.size(), arguments.aligned ? 256 : bytes_of(elements.type),
                        kernel.buffers[i].name);
    std::memcpy(at, elements.bytes.data(), elements.bytes.size());
    // Results hold nothing for the kernel, whatever stays where it does not write.
    const bool result = kernel.buffers[i].written && !is_loaded(kernel, i);
    if (!result) memory.mark_initialized(at, elements.bytes.size());
    pointers.push_back(at);
    pack(at);
  }
  for (uint32_t i = 0; i < kernel.size_slots; ++i) pack(arguments.sizes.at(i));
  const std::vector<bool> floats = floats_among_numbers(kernel);
  for (uint32_t i = 0; i < kernel.number_slots; ++i)
    pack(number_field(arguments.numbers.at(i), floats[i]));
  const int64_t work_items = work_item_count(kernel, arguments);
  EmulatedRun run;
  const auto launch = [&](int64_t begin, int64_t end) {
    void* parameters[] = {packed.data(), &begin, &end};
    run.reports.push_back(simt::run(memory, {*program, printed.entry, grid, block, parameters,
                                             size_t(shared_bytes(kernel)), kMostSharedBytes}));
  };
  launch(0, work_items / 2);
  launch(work_items / 2, work_items);
  for (size_t i = 0; i < pointers.size(); ++i) {
    std::vector<char>& bytes = arguments.buffers[i].bytes;
    std::memcpy(bytes.data(), pointers[i], bytes.size());
  }
  run.buffers = std::move(arguments.buffers);
  return run;
}

}  // namespace torch_lazy::codegen
