// What libtorch_lazy.so shows to other libraries. All else in it is hidden, which also lets calls
// within it go straight to the function.
#pragma once

// For whoever writes a backend (docs/backends.md). A header with one of these is installed, with
// all headers it includes; where one of them changes incompatibly, kBackendInterfaceVersion does.
#define TORCH_LAZY_API [[gnu::visibility("default")]]

// For the extension module, which is always built with the library; its headers are not installed.
#define TORCH_LAZY_MODULE_API [[gnu::visibility("default")]]
