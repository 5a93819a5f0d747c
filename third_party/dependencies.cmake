# Finds every dependency in one place; README.md here says why each is needed. The rest of the build
# links torch_lazy_dependencies (and, for tests, torch_lazy_test_dependencies) and finds nothing
# itself.

list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(PyTorch 2.11 REQUIRED)

# PyTorch ships the fmt that its own headers include, and a translation unit cannot hold two, so
# that one comes first; a PyTorch without it gets the system's.
find_path(FMT_INCLUDE_DIR fmt/format.h HINTS ${PyTorch_INCLUDE_DIRS} REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp REQUIRED)

add_library(torch_lazy_dependencies INTERFACE)
target_link_libraries(torch_lazy_dependencies INTERFACE PyTorch::PyTorch Python::Module
                                                        ${CMAKE_DL_LIBS})
target_include_directories(
  torch_lazy_dependencies SYSTEM INTERFACE ${Python_INCLUDE_DIRS} ${FMT_INCLUDE_DIR}
                                           ${XXHASH_INCLUDE_DIR} ${NLOHMANN_JSON_INCLUDE_DIR})
# Both as headers only: the module then needs no library that a user's machine may lack.
target_compile_definitions(torch_lazy_dependencies INTERFACE FMT_HEADER_ONLY=1 XXH_INLINE_ALL=1)

if(TORCH_LAZY_BUILD_TESTS)
  find_package(GTest REQUIRED)
  # The test executable is its own process, so it brings the Python that libtorch_python expects.
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Embed)
  add_library(torch_lazy_test_dependencies INTERFACE)
  target_link_libraries(torch_lazy_test_dependencies INTERFACE GTest::gtest GTest::gtest_main
                                                               Python::Python)
endif()
