// What a shared library with a backend shows, so that it can be judged before any of it is called.
//
//   class MyBackend final : public torch_lazy::Backend { ... };
//   TORCH_LAZY_BACKEND("mine", MyBackend);
#pragma once

#include <torch/version.h>

#include <memory>

#include "backend/backend.h"
#include "backend/registry.h"
#include "base/api.h"

namespace torch_lazy {

// Plain data, with the version in front: a library for another version may have another struct.
struct BackendLibrary {
  int interface_version;
  const char* torch_version;  // of the headers that it was compiled with
  const char* name;
  BackendFactory make;
};

// By this name the library exports its BackendLibrary.
constexpr const char* kBackendLibrarySymbol = "torch_lazy_backend";

}  // namespace torch_lazy

// Once in a library, outside of namespaces: its backend is a `Type` made without arguments.
#define TORCH_LAZY_BACKEND(backend_name, Type)                                              \
  extern "C" TORCH_LAZY_API const ::torch_lazy::BackendLibrary torch_lazy_backend;          \
  constinit const ::torch_lazy::BackendLibrary torch_lazy_backend {                         \
    ::torch_lazy::kBackendInterfaceVersion, TORCH_VERSION, backend_name,                    \
        []() -> std::unique_ptr<::torch_lazy::Backend> { return std::make_unique<Type>(); } \
  }
