// Libraries that do not fit, one for each macro. What they show must be judged without a call:
// their factory ends the process.
#if defined(OTHER_INTERFACE)
// Laid out as another version may have it.
struct OtherLibrary {
  int interface_version;
  double what_follows_is_not_known;
};
extern "C" [[gnu::visibility("default")]] const OtherLibrary torch_lazy_backend;
constinit const OtherLibrary torch_lazy_backend = {1000, 0.5};
#elif defined(NO_SYMBOL)
extern "C" [[gnu::visibility("default")]] int something_else() {
  return 0;
}
#elif defined(UNDEFINED_SYMBOL)
extern "C" void function_of_another_release();
extern "C" [[gnu::visibility("default")]] void calls_it() {
  function_of_another_release();
}
#else
#include <torch_lazy/backend/backend_library.h>

#include <cstdlib>

extern "C" TORCH_LAZY_API const torch_lazy::BackendLibrary torch_lazy_backend;
constinit const torch_lazy::BackendLibrary torch_lazy_backend = {
    torch_lazy::kBackendInterfaceVersion,
#if defined(OTHER_TORCH)
    "1.13.1", "vendor",
#elif defined(OTHER_NAME)
    TORCH_VERSION, "something else",
#endif
    []() -> std::unique_ptr<torch_lazy::Backend> { std::abort(); }};
#endif
