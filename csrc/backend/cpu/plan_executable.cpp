#include "backend/cpu/plan_executable.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>

#include "ops/thread_state.h"

namespace torch_lazy {
namespace {

// A parallel loop hands out work of at least as many simple operations, as ATen's loops do.
constexpr double kGrain = 32768;

at::Tensor empty(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType dtype) {
  return at::detail::empty_strided_cpu(sizes, strides, dtype);
}

// A tensor over the storage of another, without a dispatch.
at::Tensor view_of(const at::Tensor& base, const Layout& layout) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(base.storage()), base.key_set(), base.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, layout.offset);
  return view;
}

class Scratch {
 public:
  explicit Scratch(int64_t bytes)
      : data_(bytes > 0 ? c10::GetCPUAllocator()->allocate(size_t(bytes)) : c10::DataPtr()) {}
  void* get() const { return data_.get(); }

 private:
  c10::DataPtr data_;
};

bool all_within(const at::Tensor& indices, int64_t limit) {
  const at::Tensor flat = indices.contiguous();
  const auto check = [&](auto* data) {
    bool within = true;
    for (int64_t i = 0; i < flat.numel(); ++i) within &= data[i] >= 0 && int64_t(data[i]) < limit;
    return within;
  };
  if (flat.scalar_type() == c10::ScalarType::Long) return check(flat.const_data_ptr<int64_t>());
  return check(flat.const_data_ptr<int32_t>());
}

}  // namespace

class PlanExecutable::Run {
 public:
  Run(const PlanExecutable& executable, const RunArguments& arguments)
      : executable_(executable),
        plan_(executable.plan_),
        values_(plan_.slots),
        runner_(values_, c10::kCPU) {
    TORCH_CHECK(arguments.inputs.size() == plan_.inputs.size(), "the window takes ",
                plan_.inputs.size(), " inputs, it was given ", arguments.inputs.size());
    for (size_t i = 0; i < plan_.inputs.size(); ++i) {
      const at::Tensor& input = arguments.inputs[i];
      values_[plan_.inputs[i]] = input.is_conj() || input.is_neg() ? plain(input) : input;
    }
  }

  RunResult run() {
    RunResult result;
    size_t at = 0;
    try {
      if (plan_.arena_bytes > 0)
        arena_ = c10::GetCPUAllocator()->allocate(size_t(plan_.arena_bytes));
      for (; at < plan_.steps.size(); ++at) {
        const PlanStep& step = plan_.steps[at];
        std::visit([&](const auto& action) { perform(action); }, step.action);
        for (const uint32_t slot : step.released) values_[slot].reset();
      }
    } catch (...) {
      const int64_t origin = plan_.steps.empty() ? 0 : plan_.steps[at].origin;
      result.failure = RunFailure{size_t(origin), std::current_exception()};
      result.unchanged = at < plan_.first_write;
    }
    for (const uint32_t slot : plan_.outputs)
      result.outputs.push_back(result.failure ? at::Tensor() : values_[slot]);
    return result;
  }

 private:
  // Inputs have no conj and neg bits: where they matter the graph has operators that set them.
  static at::Tensor plain(const at::Tensor& tensor) {
    at::Tensor alias = view_of(
        tensor, {Extents(tensor.sizes()), Extents(tensor.strides()), tensor.storage_offset()});
    alias._set_conj(false);
    alias._set_neg(false);
    return alias;
  }

  void perform(const AllocateStep& step) {
    values_[step.slot] = empty(step.sizes, step.strides, step.dtype);
  }

  void perform(const ConstantStep& step) { values_[step.slot] = step.value.clone(); }

  void perform(const ViewStep& step) {
    values_[step.slot] = view_of(values_[step.base], step.layout);
  }

  void perform(const CopyStep& step) { values_[step.target].copy_(values_[step.source]); }

  void perform(const CheckStep& step) {
    if (all_within(values_[step.indices], step.limit)) return;
    runner_.run(step.raise);
    TORCH_CHECK_INDEX(false, "index out of range in ", step.raise.op->name);
  }

  void perform(const LibraryStep& step) {
    runner_.run(step.step);
    for (const LibraryStep::Output& output : step.outputs) {
      at::Tensor& made = values_[output.slot];
      if (!made.defined()) continue;
      if (made.strides() == c10::IntArrayRef(output.strides) && made.storage_offset() == 0)
        continue;
      at::Tensor laid_out = empty(output.sizes, output.strides, made.scalar_type());
      laid_out.copy_(made);
      made = std::move(laid_out);
    }
  }

  void perform(const KernelStep& step) {
    const CompiledKernel& kernel = *executable_.kernels_[next_kernel_].code;
    const int64_t scratch_bytes = executable_.kernels_[next_kernel_].scratch_bytes;
    ++next_kernel_;
    pointers_.clear();
    for (const MemoryPlace& place : step.pointers)
      pointers_.push_back(
          place.arena
              ? static_cast<char*>(arena_.get()) + place.bytes
              : static_cast<char*>(values_[place.slot].unsafeGetTensorImpl()->mutable_data()));
    const codegen::LoweredKernel& lowered = step.lowered;
    const int64_t* sizes = lowered.sizes.data();
    const double* numbers = lowered.numbers.data();
    const auto grain = int64_t(std::max(1.0, kGrain / std::max(1.0, lowered.work_item_cost)));
    if (scratch_bytes == 0 && lowered.work_items <= grain) {
      kernel.function(pointers_.data(), sizes, numbers, 0, lowered.work_items);
      return;
    }
    at::parallel_for(0, lowered.work_items, grain, [&](int64_t begin, int64_t end) {
      if (scratch_bytes == 0) {
        kernel.function(pointers_.data(), sizes, numbers, begin, end);
        return;
      }
      const Scratch scratch(scratch_bytes);
      c10::SmallVector<void*, 16> own(pointers_.begin(), pointers_.end());
      own.push_back(scratch.get());
      kernel.function(own.data(), sizes, numbers, begin, end);
    });
  }

  const PlanExecutable& executable_;
  const Plan& plan_;
  const StepThreadState state_;
  Values values_;
  StepRunner runner_;
  c10::DataPtr arena_;
  c10::SmallVector<void*, 16> pointers_;
  size_t next_kernel_ = 0;
};

PlanExecutable::PlanExecutable(Plan plan, std::vector<PlanKernel> kernels)
    : plan_(std::move(plan)), kernels_(std::move(kernels)) {}

RunResult PlanExecutable::run(const RunArguments& arguments) {
  return Run(*this, arguments).run();
}

}  // namespace torch_lazy
