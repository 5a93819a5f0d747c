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
# Neither is linked as a shared library: the module then needs none that a user's machine may lack.
target_compile_definitions(torch_lazy_dependencies INTERFACE XXH_INLINE_ALL=1)
add_library(torch_lazy_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt.cpp")
target_include_directories(torch_lazy_fmt SYSTEM PRIVATE ${FMT_INCLUDE_DIR})
target_link_libraries(torch_lazy_dependencies INTERFACE torch_lazy_fmt)

# Clang and LLVM, linked statically into the embedded compiler. Not through their own CMake packages:
# Debian's also demand the programs and shared libraries that nothing here uses.
set(torch_lazy_llvm_packages "llvm-19-dev libclang-19-dev libpolly-19-dev zlib1g-dev libzstd-dev")
find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config HINTS /usr/lib/llvm-19/bin)
set(llvm_version "not there")
if(LLVM_CONFIG)
  execute_process(COMMAND "${LLVM_CONFIG}" --version OUTPUT_VARIABLE llvm_version
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT llvm_version MATCHES "^19\\.")
  message(FATAL_ERROR "The embedded compiler needs LLVM 19; llvm-config is ${llvm_version} "
                      "(${LLVM_CONFIG}). On Debian: apt-get install ${torch_lazy_llvm_packages}. "
                      "Elsewhere set LLVM_CONFIG to the path of that version's llvm-config.")
endif()
set(torch_lazy_llvm_components
    orcjit native passes coverage lto irreader option frontendoffloading frontenddriver frontendhlsl
    frontendopenmp windowsdriver)
execute_process(
  COMMAND "${LLVM_CONFIG}" --link-static --libfiles ${torch_lazy_llvm_components}
  OUTPUT_VARIABLE llvm_libraries
  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(llvm_libraries)
execute_process(COMMAND "${LLVM_CONFIG}" --includedir OUTPUT_VARIABLE LLVM_INCLUDE_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${LLVM_CONFIG}" --libdir OUTPUT_VARIABLE LLVM_LIBRARY_DIR
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(clang_libraries)
foreach(name IN ITEMS Frontend CodeGen Driver Serialization Parse Sema APINotes Analysis Edit
                      ASTMatchers Support AST Lex Basic)
  list(APPEND clang_libraries "${LLVM_LIBRARY_DIR}/libclang${name}.a")
endforeach()
find_library(ZSTD_STATIC_LIBRARY libzstd.a)
find_library(ZLIB_STATIC_LIBRARY libz.a)
foreach(file IN LISTS clang_libraries llvm_libraries ITEMS "${ZSTD_STATIC_LIBRARY}"
                                                           "${ZLIB_STATIC_LIBRARY}")
  if(NOT EXISTS "${file}")
    message(FATAL_ERROR "A static library of the embedded compiler is missing (${file}). On Debian: "
                        "apt-get install ${torch_lazy_llvm_packages}.")
  endif()
endforeach()
add_library(torch_lazy_compiler_dependencies INTERFACE)
target_include_directories(torch_lazy_compiler_dependencies SYSTEM INTERFACE "${LLVM_INCLUDE_DIR}")
# In a group: Clang's and LLVM's libraries refer to one another both ways.
target_link_libraries(
  torch_lazy_compiler_dependencies
  INTERFACE -Wl,--start-group ${clang_libraries} ${llvm_libraries} -Wl,--end-group
            "${ZSTD_STATIC_LIBRARY}" "${ZLIB_STATIC_LIBRARY}" ${CMAKE_DL_LIBS})

if(TORCH_LAZY_BUILD_TESTS)
  find_package(GTest REQUIRED)
  # The test executable is its own process, so it brings the Python that libtorch_python expects.
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Embed)
  add_library(torch_lazy_test_dependencies INTERFACE)
  target_link_libraries(torch_lazy_test_dependencies INTERFACE GTest::gtest GTest::gtest_main
                                                               Python::Python)
endif()
