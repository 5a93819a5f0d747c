#include "ops/one_hot_operator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/one_hot.h>
#include <torch/library.h>

#include "base/immortal_library.h"

namespace torch_lazy {
namespace {

at::Tensor one_hot_of_classes(const at::Tensor& self, int64_t classes) {
  return at::one_hot(self, classes);
}

}  // namespace

void register_one_hot_operator() {
  immortal_library(torch::Library::FRAGMENT, "torch_lazy", std::nullopt)
      .def("one_hot_of_classes(Tensor self, int classes) -> Tensor");
  immortal_library(torch::Library::IMPL, "torch_lazy", c10::DispatchKey::CPU)
      .impl("one_hot_of_classes", one_hot_of_classes);
}

}  // namespace torch_lazy
