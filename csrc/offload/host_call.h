// One call of an operator on the host in the device's stead: CPU tensors in the place of the
// device's, and back. Tensors that share a storage share one on the other side, and one that comes
// twice stays one, so results that alias arguments do so on the device.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include "offload/mirrored_storage.h"
#include "ops/operator_info.h"

namespace torch_lazy {

class HostCall {
 public:
  explicit HostCall(const OperatorInfo& op);
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  // An argument as the CPU's kernel takes it. CPU tensors stay: numbers and, in lists, indices.
  // Raises where a tensor is on another device than the current one.
  c10::IValue to_host(size_t argument, const c10::IValue& value);
  at::Tensor to_host(const at::Tensor& tensor, Access access);
  // What the operator does with a tensor of that argument.
  Access access(size_t argument, const at::Tensor& tensor) const;

  // Calls `operation`; then arguments have the bytes, sizes and storages that it gave their
  // counterparts. What it was to overwrite and did not, because it raised, keeps its bytes.
  template <class Operation>
  void run(const Operation& operation) {
    try {
      operation();
    } catch (...) {
      write_back(/*raised=*/true);
      throw;
    }
    write_back(/*raised=*/false);
  }

  // A result as the device's.
  c10::IValue to_device(const c10::IValue& value);
  at::Tensor to_device(const at::Tensor& tensor);

 private:
  struct Storage {
    c10::Storage device, host;
    Access access;
    bool in_use = false;  // until the operator has ended
  };
  struct Tensor {
    at::Tensor device, host;
  };

  c10::Storage to_host(const c10::Storage& storage, Access access);
  c10::Storage to_device(const c10::Storage& storage);
  void write_back(bool raised);
  void write_back(const Tensor& tensor);

  const OperatorInfo& op_;
  const c10::Device here_;
  bool makes_views_ = false;  // it touches no memory
  std::vector<Tensor> tensors_;
  std::vector<Storage> storages_;
};

// A CPU tensor over the host's bytes of one of the device's, for as long as the device does not
// write the storage. Where it is written, they are the newest from now on.
at::Tensor lent_on_host(const at::Tensor& tensor, Access access, std::string_view cause);
// What was done to the lent tensor's sizes and storage is done to the device's.
void take_back_from_host(const at::Tensor& device, const at::Tensor& lent);

// The reverse for a strided tensor that the CPU has made: a tensor of the device with its memory.
at::Tensor adopted_from_host(const at::Tensor& tensor, c10::Device device);
// The same of a view that the CPU has made of what it was lent: a view of the device's tensor.
at::Tensor viewed_on_device(const at::Tensor& view, const at::Tensor& device);

}  // namespace torch_lazy
