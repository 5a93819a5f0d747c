// Runs a recorded window as a CUDA backend would, without a GPU: plans and library calls on the
// CPU, kernels as printed for CUDA in the emulator.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "codegen/launch_arguments.h"
#include "codegen/launch_shape.h"
#include "codegen/printer.h"
#include "passes/choose_joins.h"
#include "passes/pipeline.h"
#include "plan/executor.h"
#include "plan/make_plan.h"
#include "simt/launch.h"
#include "tape_builder.h"

namespace torch_lazy::tests {

// While it lives, new tensors of the CPU lie in the emulated device's memory.
class TensorsOnEmulatedDevice {
 public:
  TensorsOnEmulatedDevice() : allocator_(memory), before_(c10::GetCPUAllocator()) {
    c10::SetCPUAllocator(&allocator_, /*priority=*/255);
  }
  TensorsOnEmulatedDevice(const TensorsOnEmulatedDevice&) = delete;
  TensorsOnEmulatedDevice& operator=(const TensorsOnEmulatedDevice&) = delete;
  ~TensorsOnEmulatedDevice() { c10::SetCPUAllocator(before_, /*priority=*/255); }

  // Shared with the tensors in it.
  const std::shared_ptr<simt::DeviceMemory> memory = std::make_shared<simt::DeviceMemory>();

 private:
  class Allocator : public c10::Allocator {
   public:
    explicit Allocator(std::shared_ptr<simt::DeviceMemory> memory) : memory_(std::move(memory)) {}
    c10::DataPtr allocate(size_t bytes) override {
      struct Block {
        std::shared_ptr<simt::DeviceMemory> memory;
        void* address;
      };
      const std::lock_guard<std::mutex> lock(mutex());
      auto* block = new Block{memory_, memory_->allocate(bytes, 512, "tensor")};
      // The host writes too, of which nothing is seen.
      memory_->mark_initialized(block->address, bytes);
      const auto free = [](void* context) {
        const std::unique_ptr<Block> owned(static_cast<Block*>(context));
        const std::lock_guard<std::mutex> lock(mutex());
        owned->memory->free(owned->address);
      };
      return {block->address, block, free, c10::kCPU};
    }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      default_copy_data(to, from, bytes);
    }

   private:
    // Of what threads that compile for earlier tests allocate and free meanwhile.
    static std::mutex& mutex() {
      static std::mutex guard;
      return guard;
    }

    std::shared_ptr<simt::DeviceMemory> memory_;
  };

  Allocator allocator_;
  c10::Allocator* before_;
};

struct KernelReport {
  std::string kernel;
  std::string source;
  simt::Dim3 block;
  simt::Report report;
};

class EmulatedLauncher final : public Launcher {
 public:
  // What it is given outlives it.
  EmulatedLauncher(simt::DeviceMemory& memory, const codegen::GpuLimits& limits,
                   std::vector<KernelReport>& reports)
      : Launcher(c10::kCPU), memory_(memory), limits_(limits), reports_(reports) {}

  void* failure_word() const override { return failure_word_; }

  // Only kernels touch the arena.
  c10::DataPtr allocate(size_t bytes) const override {
    c10::DataPtr arena = Launcher::allocate(bytes);
    if (simt::Region* region = memory_.find(arena.get())) {
      region->name = "arena";
      std::fill(region->initialized.begin(), region->initialized.end(), 0);
    }
    return arena;
  }

  void launch(const KernelStep& step, c10::ArrayRef<void*> pointers) const override {
    const codegen::LoweredKernel& lowered = step.lowered;
    const codegen::PrintedKernel printed =
        codegen::print_kernel(lowered.kernel, {.kind = codegen::Target::Kind::kCuda});
    std::vector<uint64_t> arguments =
        codegen::launch_arguments(lowered, codegen::argument_forms(lowered.kernel), pointers);
    for (size_t i = 0; i < pointers.size(); ++i) {
      simt::Region* region = memory_.find(pointers[i]);
      if (region != nullptr && region->begin == pointers[i] && region->name == "tensor") {
        region->name = lowered.kernel.buffers[i % lowered.kernel.buffers.size()].name;
      }
    }
    int64_t begin = 0, end = lowered.work_items;
    void* parameters[] = {arguments.data(), &begin, &end};
    const codegen::LaunchShape shape = codegen::launch_shape(lowered, limits_);
    const auto program = simt::Program::compile(printed.source);
    const simt::Dim3 grid{shape.grid_x}, block{shape.block_x, shape.block_y};
    const simt::Launch launch{*program,
                              printed.entry,
                              grid,
                              block,
                              parameters,
                              shape.shared_bytes,
                              size_t(limits_.shared_bytes_of_block)};
    reports_.push_back({lowered.kernel.name, printed.source, block, simt::run(memory_, launch)});
  }

 private:
  simt::DeviceMemory& memory_;
  void* const failure_word_ = memory_.allocate(sizeof(int64_t), 8, "failure word");
  const codegen::GpuLimits limits_;
  std::vector<KernelReport>& reports_;
};

struct EmulatedWindow {
  std::vector<at::Tensor> inputs, outputs;  // of the graph, after the run
  std::vector<KernelReport> kernels;
};

inline EmulatedWindow run_emulated(const TapeBuilder& window, const TapeBuilder::Handles& live,
                                   const codegen::GpuLimits& limits) {
  const WindowGraph graph = cpu_graph(window.tape, window.live(live));
  std::vector<GraphInput> inputs;
  for (const WindowInput& input : graph.inputs) {
    inputs.push_back({input.storage, input.storage_bytes, input.offset, input.cpu});
  }
  CoreGraph core = core_graph_of(*graph.graph, inputs);
  choose_joins(core, 1);  // the rows of tests are short
  Plan plan = make_plan(core, inputs,
                        {.lanes = 32,
                         .target = codegen::Target::Kind::kCuda,
                         .shared_bytes = limits.shared_bytes_of_block,
                         .argument_bytes = 4080});
  EmulatedWindow result;
  const TensorsOnEmulatedDevice device;
  PlanExecutable executable(
      std::move(plan), std::make_unique<EmulatedLauncher>(*device.memory, limits, result.kernels));
  result.inputs = window.inputs();
  RunResult run = executable.run(result.inputs);
  if (run.failure) std::rethrow_exception(run.failure->error);
  result.outputs = std::move(run.outputs);
  return result;
}

// Expects the results to be near those that the window recorded, and no kernel to do what one may
// not.
inline EmulatedWindow run_emulated_as_eager(const TapeBuilder& window,
                                            const TapeBuilder::Handles& results,
                                            const codegen::GpuLimits& limits) {
  EmulatedWindow run = run_emulated(window, results, limits);
  EXPECT_EQ(run.outputs.size(), results.size());
  for (size_t i = 0; i < std::min(run.outputs.size(), results.size()); ++i)
    EXPECT_TRUE(
        at::allclose(run.outputs[i].to(at::kDouble), results[i].tensor.to(at::kDouble), 1e-4, 1e-4))
        << "output " << i;
  for (const KernelReport& kernel : run.kernels)
    EXPECT_EQ(kernel.report.text(), "") << kernel.source;
  return run;
}

inline Handle sum(TapeBuilder& window, const Handle& x, std::vector<int64_t> dimensions) {
  return window.call("aten::sum", "dim_IntList",
                     {x, std::move(dimensions), false, c10::IValue()})[0];
}

}  // namespace torch_lazy::tests
