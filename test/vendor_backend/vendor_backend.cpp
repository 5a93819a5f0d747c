// A backend that runs windows by `reference`, and goes wrong as the environment variable
// VENDOR_BACKEND says, which is read at each call.
#include <torch/csrc/jit/ir/ir.h>

#include <torch_lazy/backend/backend_library.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace {

using torch_lazy::CompileOptions;
using torch_lazy::Executable;
using torch_lazy::RunResult;

bool told(std::string_view what) {
  const char* const mode = std::getenv("VENDOR_BACKEND");
  return mode != nullptr && mode == what;
}

// What a driver is at the end of a process: gone before those that use it.
struct Driver {
  bool gone = false;
  ~Driver() { gone = true; }
};
Driver driver;

void call_driver() {
  if (driver.gone) std::abort();
}

void spoil(std::vector<at::Tensor>& outputs) {
  if (outputs.empty()) return;  // a window that only writes its inputs
  at::Tensor& output = outputs.front();
  if (told("wrong dtype")) output = output.to(at::kLong);
  if (told("wrong sizes")) output = output.reshape({-1, 1});
  if (told("wrong strides")) {
    std::vector<int64_t> strides = output.strides().vec();
    for (int64_t& stride : strides) stride *= 2;
    output = output.new_empty_strided(output.sizes(), strides).copy_(output);
  }
  if (told("no storage")) output = output.to(at::kMeta);
  if (told("part of a storage"))
    output = output.new_empty({output.numel() + 1}).slice(0, 1).view(output.sizes());
  if (told("small storage")) output.storage().set_nbytes(1);
  if (told("nothing")) output.reset();
  if (told("too few outputs")) outputs.pop_back();
}

// Takes every tanh for another function of the same shape.
void misread_tanh(torch::jit::Graph& graph) {
  std::vector<torch::jit::Node*> found;
  for (torch::jit::Node* node : graph.nodes())
    if (node->kind() == c10::Symbol::fromQualString("aten::tanh")) found.push_back(node);
  for (torch::jit::Node* node : found) {
    node->replaceWithNewSymbol(c10::Symbol::fromQualString("aten::sigmoid"));
    node->destroy();
  }
}

class VendorExecutable final : public Executable {
 public:
  explicit VendorExecutable(std::shared_ptr<Executable> executable)
      : executable_(std::move(executable)) {}
  ~VendorExecutable() override { call_driver(); }

  RunResult run(c10::ArrayRef<at::Tensor> inputs) override {
    call_driver();
    if (told("run raises")) throw std::runtime_error("the accelerator is on fire");
    if (told("run raises a number")) throw 42;
    if (told("run crashes")) std::abort();
    if (told("run hangs")) std::this_thread::sleep_for(std::chrono::hours(1));
    if (told("failure of no operation"))
      return {{at::Tensor()}, torch_lazy::RunFailure{99, std::make_exception_ptr(42)}};
    if (told("failure without error")) return {{at::Tensor()}, torch_lazy::RunFailure{0, nullptr}};
    if (told("slow")) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    RunResult result = executable_->run(inputs);
    spoil(result.outputs);
    return result;
  }

 private:
  const std::shared_ptr<Executable> executable_;
};

class VendorBackend final : public torch_lazy::Backend {
 public:
  VendorBackend() {
    if (told("factory raises")) throw std::runtime_error("no accelerator is plugged in");
    if (told("factory raises a number")) throw 42;
  }
  ~VendorBackend() override { std::abort(); }

  std::string device_name() const override { return "Vendor 1"; }

  std::shared_ptr<Executable> compile(std::shared_ptr<torch::jit::Graph> graph,
                                      const CompileOptions& options) override {
    if (told("compile raises")) throw std::runtime_error("this graph is too much");
    if (told("compile raises bad_alloc")) throw std::bad_alloc();
    if (told("compile raises a number")) throw 42;
    if (told("compile returns nothing")) return nullptr;
    if (told("compile hangs")) std::this_thread::sleep_for(std::chrono::hours(1));
    if (told("compile takes 3 s")) std::this_thread::sleep_for(std::chrono::seconds(3));
    if (told("tanh is wrong")) misread_tanh(*graph);
    call_driver();
    return std::make_shared<VendorExecutable>(
        torch_lazy::backend_by_name("reference").compile(std::move(graph), options));
  }

  void trim() override {
    if (told("trim raises a number")) throw 42;
  }
};

}  // namespace

TORCH_LAZY_BACKEND("vendor", VendorBackend);
