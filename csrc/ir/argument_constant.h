// Makes a constant that was decoded from the tape the exact type an operator's argument asks for.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Device.h>

namespace torch_lazy {

// The tape keeps a constant's bits, not the declared type of its argument: a generic list gets the
// element type of `formal` here, an integer passed for a float becomes one, and the device `lazy`
// becomes `device`, where the backend's tensors live. None stays None.
c10::IValue argument_constant(const c10::IValue& constant, const c10::TypePtr& formal,
                              c10::Device device);

// Without Optional[...] around it.
c10::TypePtr strip_optional(const c10::TypePtr& type);

}  // namespace torch_lazy
