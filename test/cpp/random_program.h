// Random windows of views, writes and arithmetic on small tensors of several types.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "tape_builder.h"

namespace torch_lazy::tests {

class RandomProgram {
 public:
  using Handles = TapeBuilder::Handles;

  explicit RandomProgram(uint32_t seed) : random_(seed) {
    at::manual_seed(seed);
    add_inputs();
    const int operations = 3 + below(14);
    for (int i = 0; i < operations; ++i) {
      const int choice = below(10);
      if (choice < 2)
        add_pure();
      else if (choice < 5)
        add_view();
      else
        add_write();
    }
  }

  const TapeBuilder& window() const { return window_; }
  // The handles whose storages the window made, some of them.
  Handles live() {
    Handles live;
    for (const Handle& handle : made_)
      if (below(2)) live.push_back(handle);
    return live;
  }

 private:
  using Arguments = std::vector<TapeBuilder::Argument>;

  int below(int bound) { return int(random_() % uint32_t(bound)); }
  int64_t size(int64_t bound) { return bound == 0 ? 0 : int64_t(random_() % uint64_t(bound)); }
  const Handle& any() { return pool_[size_t(below(int(pool_.size())))]; }

  c10::ScalarType dtype() {
    constexpr c10::ScalarType kDtypes[] = {at::kFloat, at::kFloat, at::kFloat, at::kDouble,
                                           at::kInt,   at::kHalf,  at::kBool};
    return kDtypes[below(7)];
  }

  at::Tensor fresh(std::vector<int64_t> sizes) { return at::randn(sizes).mul(4).to(dtype()); }

  void add_inputs() {
    const int storages = 1 + below(3);
    for (int i = 0; i < storages; ++i) {
      const at::Tensor base = fresh({2 + below(4), 2 + below(4)});
      const int views = 1 + below(3);
      for (int j = 0; j < views; ++j) {
        at::Tensor view = base;
        switch (j == 0 ? below(3) : 1 + below(5)) {
          case 1:
            view = base.narrow(0, below(2), 1 + size(base.size(0) - 1));
            break;
          case 2:
            view = base.narrow(1, below(2), 1 + size(base.size(1) - 1));
            break;
          case 3:
            view = base.t();
            break;
          case 4:
            view = base.view({-1}).slice(0, below(3), std::nullopt, 1 + below(3));
            break;
          case 5:
            view = base.select(0, below(2));
            break;
          default:
            break;
        }
        pool_.push_back(window_.input(view));
      }
    }
  }

  // Tries the operator on copies first: what raises in eager is never recorded.
  bool call(const char* name, const char* overload, const Arguments& arguments) {
    if (!runs(name, overload, arguments)) return false;
    for (const Handle& handle : window_.call(name, overload, arguments)) {
      if (!handle.tensor.defined()) continue;
      pool_.push_back(handle);
      bool known = false;
      for (const Handle& other : known_) known |= other.tensor.is_alias_of(handle.tensor);
      if (!known) made_.push_back(handle);
    }
    return true;
  }

  bool runs(const char* name, const char* overload, const Arguments& arguments) {
    for (const Handle& handle : pool_) {
      bool known = false;
      for (const Handle& other : known_) known |= other.tensor.is_same(handle.tensor);
      if (!known) known_.push_back(handle);
    }
    std::unordered_map<const void*, at::Tensor> copies;
    const auto copy = [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return tensor;
      at::Tensor& whole = copies[tensor.storage().unsafeGetStorageImpl()];
      if (!whole.defined()) {
        const int64_t elements = int64_t(tensor.storage().nbytes()) / tensor.itemsize();
        whole = at::empty({0}, tensor.options()).set_(tensor.storage(), 0, {elements}, {1}).clone();
      }
      return whole.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
    };
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
    torch::jit::Stack stack;
    for (const auto& argument : arguments) {
      if (const auto* handle = std::get_if<Handle>(&argument)) {
        stack.emplace_back(copy(handle->tensor));
      } else if (const auto* handles = std::get_if<Handles>(&argument)) {
        c10::List<at::Tensor> list;
        for (const Handle& element : *handles) list.push_back(copy(element.tensor));
        stack.emplace_back(std::move(list));
      } else if (const auto* number = std::get_if<at::Tensor>(&argument)) {
        stack.emplace_back(*number);
      } else {
        stack.push_back(std::get<c10::IValue>(argument));
      }
    }
    try {
      op.callBoxed(&stack);
      return true;
    } catch (const c10::Error&) {
      return false;
    }
  }

  void add_pure() {
    const Handle x = any(), y = any();
    switch (below(6)) {
      case 0:
        call("aten::add", "Tensor", {x, y, 1});
        break;
      case 1:
        call("aten::mul", "Tensor", {x, number(2)});
        break;
      case 2:
        call("aten::neg", "", {x});
        break;
      case 3:
        call("aten::sum", "dim_IntList", {x, std::vector<int64_t>{0}, true, kNone});
        break;
      case 4:
        call("aten::cat", "", {Handles{x, y}, 0});
        break;
      default:
        call("aten::clone", "", {x, kNone});
        break;
    }
  }

  void add_view() {
    const Handle x = any();
    const int64_t dims = x.tensor.dim();
    const int64_t dim = size(dims), length = dims ? x.tensor.size(dim) : 0;
    switch (below(15)) {
      case 0:
        call("aten::t", "", {x});
        break;
      case 1:
        call("aten::transpose", "int", {x, 0, -1});
        break;
      case 2:
        call("aten::select", "int", {x, dim, size(length)});
        break;
      case 3:
        call("aten::slice", "Tensor", {x, dim, size(length), length, 1 + size(2)});
        break;
      case 4:
        call("aten::view", "", {x, std::vector<int64_t>{x.tensor.numel()}});
        break;
      case 5:
        call("aten::unsqueeze", "", {x, dim});
        break;
      case 6:
        call("aten::squeeze", "", {x});
        break;
      case 7:
        call("aten::alias", "", {x});
        break;
      case 8:
        call("aten::detach", "", {x});
        break;
      case 9:
        call("aten::diagonal", "", {x, 0, 0, 1});
        break;
      case 10:
        call("aten::split", "Tensor", {x, 2, dim});
        break;
      case 11:
        call("aten::unbind", "int", {x, dim});
        break;
      case 12:
        call("aten::unfold", "", {x, dim, 2, 1 + size(2)});
        break;
      case 13: {
        std::vector<int64_t> sizes = x.tensor.sizes().vec();
        sizes.insert(sizes.begin(), 2);
        call("aten::expand", "", {x, sizes, false});
        break;
      }
      default: {
        const int64_t elements = int64_t(x.tensor.storage().nbytes()) / x.tensor.itemsize();
        const int64_t rows = 1 + size(3), stride = 1 + size(4), offset = size(3);
        if (offset + (rows - 1) * stride + 2 <= elements)
          call("aten::as_strided", "",
               {x, std::vector<int64_t>{rows, 2}, std::vector<int64_t>{stride, 1}, offset});
        break;
      }
    }
  }

  void add_write() {
    const Handle x = any(), y = any(), z = any();
    switch (below(16)) {
      case 0:
        call("aten::add_", "Tensor", {x, y, 1});
        break;
      case 1:
        call("aten::mul_", "Tensor", {x, number(3)});
        break;
      case 2:
        call("aten::relu_", "", {x});
        break;
      case 3:
        call("aten::zero_", "", {x});
        break;
      case 4:
        call("aten::fill_", "Scalar", {x, 2});
        break;
      case 5:
        call("aten::fill_", "Tensor", {x, y});
        break;
      case 6:
        call("aten::lt_", "Tensor", {x, y});
        break;
      case 7:
        call("aten::addcmul_", "", {x, y, z, 1});
        break;
      case 8:
        if (x.tensor.sizes() == y.tensor.sizes()) call("aten::neg", "out", {x, y});
        break;
      case 9:
        if (x.tensor.sizes() == z.tensor.sizes() && y.tensor.sizes() == z.tensor.sizes())
          call("aten::add", "out", {x, y, 1, z});
        break;
      case 10:
        call("aten::_foreach_add_", "List", {Handles{x, y}, Handles{z, z}, 1});
        break;
      case 11:
        call("aten::t_", "", {x});
        break;
      case 12:
        call("aten::masked_fill_", "Scalar", {x, y, 5});
        break;
      default:
        call("aten::copy_", "", {x, y, false});
        break;
    }
  }

  std::mt19937 random_;
  TapeBuilder window_;
  Handles pool_;   // all there is to take
  Handles made_;   // the first of each storage that the window made
  Handles known_;  // the pool before the operation being added
};

}  // namespace torch_lazy::tests
