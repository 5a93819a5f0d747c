# Finds the PyTorch that the chosen Python imports, and makes the imported target PyTorch::PyTorch.
#
# PyTorch's own TorchConfig.cmake is not used: for a CUDA wheel it insists on a CUDA toolkit, which
# this plugin neither compiles against nor needs.
#
# Needs: Python_EXECUTABLE. Sets: PyTorch_VERSION ("2.13.0", without a local part such as "+cpu"),
# PyTorch_ROOT_DIR, PyTorch_INCLUDE_DIRS, PyTorch_LIBRARY_DIR. Nothing is cached, so a configure in
# another environment sees that environment's PyTorch.

# Autoload is off so that configuring never loads the plugin that is being built.
execute_process(
  COMMAND
    "${CMAKE_COMMAND}" -E env TORCH_DEVICE_BACKEND_AUTOLOAD=0 "${Python_EXECUTABLE}" -c
    "import os, torch; print(os.path.dirname(torch.__file__), torch.__version__.split('+')[0], int(torch.compiled_with_cxx11_abi()), sep=';')"
  OUTPUT_VARIABLE _pytorch_answer
  ERROR_VARIABLE _pytorch_error
  RESULT_VARIABLE _pytorch_status
  OUTPUT_STRIP_TRAILING_WHITESPACE)
if(_pytorch_status EQUAL 0)
  list(GET _pytorch_answer 0 PyTorch_ROOT_DIR)
  list(GET _pytorch_answer 1 PyTorch_VERSION)
  list(GET _pytorch_answer 2 _pytorch_cxx11_abi)
  set(PyTorch_INCLUDE_DIRS "${PyTorch_ROOT_DIR}/include"
                           "${PyTorch_ROOT_DIR}/include/torch/csrc/api/include")
  set(PyTorch_LIBRARY_DIR "${PyTorch_ROOT_DIR}/lib")
else()
  set(PyTorch_NOT_FOUND_MESSAGE
      "${Python_EXECUTABLE} cannot import torch: install it into that environment first.\n${_pytorch_error}"
  )
  # A semicolon would begin another argument below.
  string(REPLACE ";" "," PyTorch_NOT_FOUND_MESSAGE "${PyTorch_NOT_FOUND_MESSAGE}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  PyTorch
  REQUIRED_VARS PyTorch_ROOT_DIR PyTorch_INCLUDE_DIRS PyTorch_LIBRARY_DIR
  VERSION_VAR PyTorch_VERSION
  REASON_FAILURE_MESSAGE "${PyTorch_NOT_FOUND_MESSAGE}")

if(PyTorch_FOUND AND NOT TARGET PyTorch::PyTorch)
  add_library(PyTorch::PyTorch INTERFACE IMPORTED)
  target_include_directories(PyTorch::PyTorch SYSTEM INTERFACE ${PyTorch_INCLUDE_DIRS})
  target_compile_definitions(PyTorch::PyTorch
                             INTERFACE _GLIBCXX_USE_CXX11_ABI=${_pytorch_cxx11_abi}
                                       # As PyTorch itself is built: its headers then include the
                                       # operators they use, not all of them.
                                       AT_PER_OPERATOR_HEADERS)
  # torch_python holds the pybind11 casters of at::Tensor and what a Python object has to do with a
  # tensor.
  foreach(_library IN ITEMS torch_python torch torch_cpu c10)
    target_link_libraries(PyTorch::PyTorch
                          INTERFACE "${PyTorch_LIBRARY_DIR}/lib${_library}.so")
  endforeach()
  # at::parallel_for is a template that runs serially, silently, where it is not compiled with
  # OpenMP. The runtime has to be the one PyTorch uses: its own copy, where it has one.
  file(GLOB _pytorch_openmp "${PyTorch_LIBRARY_DIR}/libgomp*.so*")
  if(NOT _pytorch_openmp)
    set(_pytorch_openmp gomp)
  endif()
  list(GET _pytorch_openmp 0 _pytorch_openmp)
  target_compile_options(PyTorch::PyTorch INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fopenmp>)
  target_link_libraries(PyTorch::PyTorch INTERFACE "${_pytorch_openmp}")
endif()
