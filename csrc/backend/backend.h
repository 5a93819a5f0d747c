// The interface of an execution backend: all that a vendor includes.
//
// A backend gives the core a device with memory, says whether it has eager kernels, and compiles
// graphs into executables. Tensors are the currency: at::Tensor on the backend's own device (its
// dispatch key, its allocator), never on device `lazy`.
//
// Threads: compile() is called from a background thread, everything else from the thread that
// records; an Executable is run by one thread at a time. No call may take Python's GIL while it
// holds a lock of its own.
//
// Errors: a function that cannot do what it is asked raises c10::Error; run() instead reports which
// operation failed, because what later operations would have written must be known.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace torch::jit {
struct Graph;
struct Node;
}  // namespace torch::jit

namespace torch_lazy {

// Changed with every incompatible change of this file; a library built for another version is
// refused when it registers.
constexpr int kBackendInterfaceVersion = 3;

struct DeviceProperties {
  std::string name;
  c10::Device device;         // where this backend's tensors live, e.g. cpu or cuda:0
  int64_t total_memory = 0;   // bytes; 0 when unknown
  bool asynchronous = false;  // run() may return before the work is done
};

// An operation marked for a point on a backend's stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool finished() const = 0;
  virtual void wait() const = 0;  // blocks the calling thread; must not hold the GIL
};

// What a graph's types do not say of an input.
struct GraphInput {
  // Inputs with the same number share storage; a number that no other input has means nothing.
  uint32_t storage = 0;
  int64_t storage_bytes = 0;
  int64_t offset = 0;  // elements from the start of the storage
  bool cpu = false;    // a tensor of the CPU, whatever the backend's device
  bool operator==(const GraphInput&) const = default;
};

struct CompileOptions {
  std::vector<GraphInput> inputs;  // one per graph input
  // torch.use_deterministic_algorithms was on when recorded: equal runs give equal bits.
  bool deterministic = false;
  bool verify = false;  // check metadata of every value against the graph while running
  bool operator==(const CompileOptions&) const = default;
};

// What a run is given. References are valid during run() only.
struct RunArguments {
  // One per graph input, in order, with the sizes, strides and dtype of the input's type. Inputs
  // may share storage. Writes to them must be visible in their storage when run() has finished.
  // Dynamic scalars, constants that became arguments, are the last ones: 0-dim doubles on the
  // CPU.
  c10::ArrayRef<at::Tensor> inputs;
  c10::ArrayRef<int64_t> sizes;
  // Indices of inputs whose storage nobody else can reach: its memory may be reused.
  c10::ArrayRef<uint32_t> donated;
  c10::Stream stream;
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
};

class Executable {
 public:
  virtual ~Executable() = default;
  virtual RunResult run(const RunArguments& arguments) = 0;
  virtual int64_t workspace_bytes() const { return 0; }  // taken from the allocator during run()
  // Bytes from which Backend::load makes an equal executable; empty when it cannot be kept.
  virtual std::string serialize() const { return {}; }
};

// A compile that may still be under way.
class CompileHandle {
 public:
  virtual ~CompileHandle() = default;
  virtual bool ready() const = 0;
  // Blocks until ready; raises what the compile raised.
  virtual std::shared_ptr<Executable> get() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  virtual int device_count() const = 0;
  virtual DeviceProperties properties(c10::DeviceIndex index) const = 0;

  // Whether operations can run one at a time through ATen on this backend's tensors. Without eager
  // kernels, unmatched operations run on the CPU.
  virtual bool has_eager_kernels() const = 0;

  virtual c10::Allocator* allocator(c10::DeviceIndex index) = 0;
  virtual void copy(const at::Tensor& source, at::Tensor& destination, bool non_blocking,
                    c10::Stream stream) = 0;
  virtual c10::Stream current_stream(c10::DeviceIndex index) = 0;
  virtual std::unique_ptr<Event> record_event(c10::Stream stream) = 0;
  virtual void synchronize(c10::DeviceIndex index) = 0;

  // Whether the nodes can be compiled together. What no group supports runs through ATen.
  virtual bool supports(c10::ArrayRef<const torch::jit::Node*> group) const = 0;

  // The graph is TorchScript as recorded: in-place and view operators stand on it as called, every
  // value has a complete tensor type, outputs are the values whose storages outlive the graph.
  virtual std::unique_ptr<CompileHandle> compile(std::shared_ptr<torch::jit::Graph> graph,
                                                 const CompileOptions& options) = 0;
  // Raises when the bytes are not from serialize() of the same backend and version.
  virtual std::shared_ptr<Executable> load(std::string_view serialized);

  // Nothing was compiled for a while and nothing waits to be: what only compiles need may be given
  // back. Called from the background thread.
  virtual void rest() {}
};

}  // namespace torch_lazy
