# Finds Clang and LLVM as static libraries, which go into the embedded compiler, and makes the imported
# target StaticClang::StaticClang. The version asked for is the major version.
#
# Not through their own CMake packages: Debian's also demand the programs and shared libraries that
# nothing here uses.
#
# Reads LLVM_CONFIG where it is set: the path of that version's llvm-config.

set(_clang_major "${StaticClang_FIND_VERSION_MAJOR}")
set(_clang_packages "llvm-${_clang_major}-dev libclang-${_clang_major}-dev libpolly-${_clang_major}-dev zlib1g-dev libzstd-dev")
set(_clang_components
    orcjit native passes coverage lto irreader option frontendoffloading frontenddriver frontendhlsl
    frontendopenmp windowsdriver)
set(_clang_parts
    Frontend CodeGen Driver Serialization Parse Sema APINotes Analysis Edit ASTMatchers Support AST
    Lex Basic)

find_program(LLVM_CONFIG NAMES "llvm-config-${_clang_major}" llvm-config
             HINTS "/usr/lib/llvm-${_clang_major}/bin")
set(StaticClang_VERSION)
set(_clang_complete)
set(_clang_why "there is no llvm-config")
if(LLVM_CONFIG)
  execute_process(COMMAND "${LLVM_CONFIG}" --version OUTPUT_VARIABLE StaticClang_VERSION
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(_clang_why "${LLVM_CONFIG} is version ${StaticClang_VERSION}")
endif()
if(StaticClang_VERSION MATCHES "^${_clang_major}\\.")
  execute_process(
    COMMAND "${LLVM_CONFIG}" --link-static --libfiles ${_clang_components}
    OUTPUT_VARIABLE _llvm_libraries
    ERROR_VARIABLE _llvm_error OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  separate_arguments(_llvm_libraries)
  execute_process(COMMAND "${LLVM_CONFIG}" --includedir OUTPUT_VARIABLE _llvm_include
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  execute_process(COMMAND "${LLVM_CONFIG}" --libdir OUTPUT_VARIABLE _llvm_libdir
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(TRANSFORM _clang_parts PREPEND "${_llvm_libdir}/libclang")
  list(TRANSFORM _clang_parts APPEND ".a")
  find_library(ZSTD_STATIC_LIBRARY libzstd.a)
  find_library(ZLIB_STATIC_LIBRARY libz.a)

  set(_clang_complete TRUE)
  if(NOT _llvm_libraries)
    set(_clang_complete FALSE)
    set(_clang_why "${LLVM_CONFIG} says: ${_llvm_error}")
  endif()
  foreach(_file IN LISTS _clang_parts _llvm_libraries ITEMS "${ZSTD_STATIC_LIBRARY}"
                                                            "${ZLIB_STATIC_LIBRARY}"
                                                            "${_llvm_include}/clang/Basic/Version.h")
    if(NOT EXISTS "${_file}")
      set(_clang_complete FALSE)
      set(_clang_why "a file is missing: ${_file}")
      break()
    endif()
  endforeach()
endif()

# A semicolon would begin another argument below.
string(REPLACE ";" "," _clang_why "${_clang_why}")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  StaticClang
  REQUIRED_VARS LLVM_CONFIG _clang_complete
  REASON_FAILURE_MESSAGE
    "The embedded compiler needs the static libraries of Clang and LLVM ${_clang_major}, and ${_clang_why}. On Debian: apt-get install ${_clang_packages}. Elsewhere set LLVM_CONFIG to the path of that version's llvm-config. Without them the package is built with -DTORCH_LAZY_CPU_COMPILER=OFF."
)

if(StaticClang_FOUND AND NOT TARGET StaticClang::StaticClang)
  add_library(StaticClang::StaticClang INTERFACE IMPORTED)
  target_include_directories(StaticClang::StaticClang SYSTEM INTERFACE "${_llvm_include}")
  # In a group: Clang's and LLVM's libraries refer to one another both ways.
  target_link_libraries(
    StaticClang::StaticClang
    INTERFACE -Wl,--start-group ${_clang_parts} ${_llvm_libraries} -Wl,--end-group
              "${ZSTD_STATIC_LIBRARY}" "${ZLIB_STATIC_LIBRARY}" ${CMAKE_DL_LIBS})
endif()
