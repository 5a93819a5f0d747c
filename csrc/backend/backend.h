// The interface of an execution backend: it compiles graphs into executables.
//
// Tensors are the currency: at::Tensor on the backend's own device (its dispatch key, its
// allocator), never on device `lazy`.
//
// Threads: compile() and trim() are called from a background thread, run() from the thread that
// records, from one thread at a time unless the executable says otherwise. No call may take
// Python's GIL while it holds a lock of its own.
//
// Errors: a function that cannot do what it is asked raises c10::Error; run() instead reports which
// operation failed, because what later operations would have written must be known.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace torch::jit {
struct Graph;
}  // namespace torch::jit

namespace torch_lazy {

class DeviceRuntime;  // backend/device_runtime.h

// Changed with every incompatible change of this file or of another header that is installed for
// backends (base/api.h); a library built for another version is refused when it is loaded.
constexpr int kBackendInterfaceVersion = 13;

// What a graph's types do not say of an input.
struct GraphInput {
  // Inputs with the same number share storage; a number that no other input has means nothing.
  uint32_t storage = 0;
  // Of the storage, as far as the window may touch it, counted as the offset is.
  int64_t storage_bytes = 0;
  // Where the inputs over one storage lie relative to each other, in elements. One run may be given
  // another part of a larger storage than the next: what an input's own offset adds to this is the
  // same for all inputs over the storage, and is 0 where an operator looks at offsets (as_strided).
  // Inputs of different dtypes over one storage are not to be compared.
  int64_t offset = 0;
  bool cpu = false;  // a tensor of the CPU, whatever the backend's device
  bool operator==(const GraphInput&) const = default;
};

struct CompileOptions {
  // Where the tensors lie that the executable is given and returns.
  c10::Device device = c10::kCPU;
  std::vector<GraphInput> inputs;  // one per graph input
  // torch.use_deterministic_algorithms was on when recorded: equal runs give equal bits.
  bool deterministic = false;
  // Check the metadata of what operators return against the graph while running.
  bool verify = false;
  // Nodes of the graph, by their index in graph->nodes(), ascending, that were measured to be
  // faster as ATen's own calls than in what this backend made of the graph before. It may leave
  // them whole; what it makes is measured again.
  std::vector<int64_t> library_operations = {};
  bool operator==(const CompileOptions&) const = default;
};

struct RunFailure {
  size_t operation;          // index of the failing node in the order of graph->nodes()
  std::exception_ptr error;  // as eager would raise it
};

struct RunResult {
  // One per graph output, each with a storage of its own unless the graph says it aliases.
  // Undefined where a failure came first.
  std::vector<at::Tensor> outputs;
  std::optional<RunFailure> failure;
  // With a failure: nothing was written to any input, so that the caller may run the operations one
  // by one instead, which fails exactly where eager does.
  bool unchanged = false;
  // False while something that runs do is tried out, and further runs may take less.
  bool is_settled = true;
};

// One step of a run.
struct StepTime {
  // The nodes of the graph, by their index in graph->nodes(), that the step does or has a part in.
  // Valid as long as the executable.
  c10::ArrayRef<int64_t> operations;
  std::chrono::nanoseconds time;
};

// A run that begins before all operations of its window are recorded. It may be given up: until
// finish() it has written to no input.
class StagedRun {
 public:
  virtual ~StagedRun() = default;

  // The first `nodes` nodes of the graph are what the program does. Submits what follows from them
  // and from the inputs that are known; the others are undefined. Returns whether that was
  // anything. Does not wait for the device, but where a command itself does. What fails is reported
  // by finish().
  virtual bool advance(size_t nodes, c10::ArrayRef<at::Tensor> inputs) = 0;

  // The rest, as Executable::run(). Called once, last.
  virtual RunResult finish(c10::ArrayRef<at::Tensor> inputs) = 0;
};

class Executable {
 public:
  virtual ~Executable() = default;

  // `inputs` has one tensor per graph input, in order, with the sizes, strides and dtype of the
  // input's type; they are valid during the call only. Inputs may share storage. Writes to them are
  // visible in their storage when run() has returned. Dynamic scalars, constants that became
  // inputs, are the last ones: 0-dim doubles on the CPU.
  virtual RunResult run(c10::ArrayRef<at::Tensor> inputs) = 0;

  // As run(), and adds what the steps took, the same steps at every run. Called for few runs, to
  // find steps that take longer than the operations they replaced; an executable that does not
  // override it is only measured as a whole.
  virtual RunResult run_timed(c10::ArrayRef<at::Tensor> inputs, std::vector<StepTime>& times) {
    static_cast<void>(times);
    return run(inputs);
  }

  // A run in stages, of a device that runs behind the host and whose guard can tell whether a
  // stream is idle. Null where there is none. It does not outlive the executable; other runs may
  // come between its stages.
  virtual std::unique_ptr<StagedRun> begin_run() { return nullptr; }

  // Whether several threads may run it at a time, those that compute with one model for instance.
  // The same whenever it is asked. Where they may not, they wait for each other.
  virtual bool is_concurrent() const { return false; }
};

class Backend {
 public:
  virtual ~Backend() = default;

  // On whose tensors its executables work: lazy tensors live on such a device where this backend is
  // the chosen one. None: on those of any device.
  virtual std::optional<c10::DeviceType> device_type() const { return c10::DeviceType::CPU; }

  // Of a device that PyTorch has no kernels for, whose type is PrivateUse1 then: operations that no
  // window of this backend has run on the CPU. Null where PyTorch has them. The same one
  // whenever it is asked; it lives as long as the process.
  virtual DeviceRuntime* device_runtime() { return nullptr; }

  // The hardware that executables run on, for users to read: "AMD EPYC 9B14".
  virtual std::string device_name() const = 0;

  // The graph, which is the backend's own, is TorchScript as recorded: in-place and view operators
  // stand on it as called, every value has a complete tensor type, outputs are the values whose
  // storages outlive the graph.
  virtual std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                              const CompileOptions& options) = 0;

  // Nothing was compiled for a while and nothing waits to be: what only compiles need may be given
  // back to the system.
  virtual void trim() {}
};

}  // namespace torch_lazy
