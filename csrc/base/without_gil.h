// The scope of a wait for another thread that may need Python's GIL.
#pragma once

#include <Python.h>

namespace torch_lazy {

// Releases the GIL where the calling thread holds it: PyTorch calls most operators without it, but
// some with it.
class WithoutGil {
 public:
  WithoutGil() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr) {}
  ~WithoutGil() {
    if (state_) PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace torch_lazy
