# Finds every dependency in one place; README.md here says why each is needed. The rest of the build
# links torch_lazy_dependencies (and, for tests, torch_lazy_test_dependencies) and finds nothing
# itself.

list(PREPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")

find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
find_package(PyTorch 2.11 REQUIRED)
if(PyTorch_VERSION VERSION_GREATER_EQUAL 2.14)
  message(WARNING "torch_lazy has been tried with PyTorch 2.11 to 2.13, and not with "
                  "${PyTorch_VERSION}: it may not compile, or not work")
endif()

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
# Neither is linked as a shared library: the module then needs none that a user's machine may lack.
target_compile_definitions(torch_lazy_dependencies INTERFACE XXH_INLINE_ALL=1)
add_library(torch_lazy_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp")
target_include_directories(torch_lazy_fmt SYSTEM PRIVATE ${FMT_INCLUDE_DIR})
target_link_libraries(torch_lazy_dependencies INTERFACE torch_lazy_fmt)

# The embedded compiler's; the build goes on without it unless it is asked for.
set(TORCH_LAZY_CPU_COMPILER AUTO CACHE STRING
    "Embed Clang, which compiles kernels for the CPU: AUTO where its libraries are found, ON, OFF")
set_property(CACHE TORCH_LAZY_CPU_COMPILER PROPERTY STRINGS AUTO ON OFF)
if(NOT TORCH_LAZY_CPU_COMPILER MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "TORCH_LAZY_CPU_COMPILER is AUTO, ON or OFF, and not "
                      "'${TORCH_LAZY_CPU_COMPILER}'")
endif()
if(TORCH_LAZY_CPU_COMPILER STREQUAL "AUTO")
  find_package(StaticClang 19)
elseif(TORCH_LAZY_CPU_COMPILER)
  find_package(StaticClang 19 REQUIRED)
endif()
if(NOT TARGET StaticClang::StaticClang)
  message(STATUS "Without a kernel compiler for the CPU (TORCH_LAZY_CPU_COMPILER="
                 "${TORCH_LAZY_CPU_COMPILER}): the backend `reference` runs windows there")
endif()

if(TORCH_LAZY_BUILD_TESTS)
  if(NOT TARGET StaticClang::StaticClang)
    message(FATAL_ERROR "TORCH_LAZY_BUILD_TESTS: the C++ tests compile kernels and need the kernel "
                        "compiler. -DTORCH_LAZY_CPU_COMPILER=ON says what it is missing.")
  endif()
  find_package(GTest REQUIRED)
  # The test executable is its own process, so it brings the Python that libtorch_python expects.
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Embed)
  add_library(torch_lazy_test_dependencies INTERFACE)
  target_link_libraries(torch_lazy_test_dependencies INTERFACE GTest::gtest GTest::gtest_main
                                                               Python::Python)
endif()
