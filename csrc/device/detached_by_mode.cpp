#include "device/detached_by_mode.h"

#include <c10/core/SafePyObject.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

namespace torch_lazy {

c10::intrusive_ptr<c10::TensorImpl> detached_by_mode(const c10::TensorImpl& tensor,
                                                     const c10::VariableVersion& version,
                                                     bool allow_metadata_change) {
  const int64_t modes = c10::impl::TorchDispatchModeTLS::stack_len();
  if (modes == 0 || c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Python)) return {};
  const auto& mode = c10::impl::TorchDispatchModeTLS::get_stack_at(modes - 1);
  auto seen = mode->pyinterpreter()->detach(&tensor);
  if (seen && !seen->is_inference()) {
    seen->set_version_counter(version);
    seen->set_allow_tensor_metadata_change(allow_metadata_change);
  }
  return seen;
}

}  // namespace torch_lazy
