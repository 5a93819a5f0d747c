// One-hot codes of a given number of classes as one operator, under the name that stands on tapes
// and in graphs. `aten::one_hot` looks at its argument at the call, even where it is told how many
// classes there are (device/composites.cpp).
//
//   torch_lazy::one_hot_of_classes(self, classes): as at::one_hot; fails on other classes
#pragma once

namespace torch_lazy {

constexpr const char* kOneHotOfClasses = "torch_lazy::one_hot_of_classes";

// Defines the operator and its CPU kernel. Once a process, before it is looked up.
void register_one_hot_operator();

}  // namespace torch_lazy
