/* The C interface of libtorch_lazy_compiler.so: C++ source text to an object file, and an object
 * file to a function that can be called.
 *
 * Plain C, so that the library shares no C++ type, no allocator and no exception with the process
 * it is loaded into. Everything is reached through the table that torch_lazy_compiler_api returns.
 * Texts that come with a size need not end in a zero byte. */
#ifndef TORCH_LAZY_COMPILER_API_H
#define TORCH_LAZY_COMPILER_API_H

#include <stddef.h> /* NOLINT(modernize-deprecated-headers) */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every incompatible change of this file. */
#define TORCH_LAZY_COMPILER_API_VERSION 2

/* The one symbol that the library exports. */
#define TORCH_LAZY_COMPILER_API_SYMBOL "torch_lazy_compiler_api"

/* Instruction sets to compile for. All but the host's are fixed, for tests and comparisons; whether
 * the machine can run them is the caller's business. */
enum TorchLazyTarget {
  TORCH_LAZY_TARGET_HOST = 0,     /* everything the machine that runs this process has */
  TORCH_LAZY_TARGET_AVX2 = 1,     /* x86-64-v3; refused on other architectures */
  TORCH_LAZY_TARGET_BASELINE = 2, /* what every machine of the architecture has */
};

enum TorchLazyOutput {
  TORCH_LAZY_OUTPUT_OBJECT = 0,   /* relocatable object file */
  TORCH_LAZY_OUTPUT_ASSEMBLY = 1, /* text, to be read */
  TORCH_LAZY_OUTPUT_LLVM_IR = 2,  /* text after optimization, to be read */
};

/* Compiles for one target. Used by one thread at a time. */
typedef struct TorchLazyCompiler TorchLazyCompiler;
/* Holds executable code. May be used by any number of threads. */
typedef struct TorchLazyLoader TorchLazyLoader;
/* One loaded object file. */
typedef struct TorchLazyCode TorchLazyCode;

/* Bytes that the library allocated; given back with TorchLazyCompilerApi::release. */
typedef struct TorchLazyBytes {
  char* data;
  size_t size;
} TorchLazyBytes;

typedef struct TorchLazyCompileRequest {
  const char* source; /* C++20, complete: there are no headers to include */
  size_t source_size;
  size_t source_size_limit; /* bytes; a longer source is refused */
  int64_t time_limit_ns;    /* of processor time; looked at between tokens and between passes */
  enum TorchLazyOutput output;
  /* Called between tokens and between passes, on a thread of the library's that holds no lock then,
   * where a fork of the process finds the library whole; may block. Null for none. */
  void (*safe_point)(void);
} TorchLazyCompileRequest;

typedef struct TorchLazyCompileResult {
  int32_t succeeded;
  /* The output where `succeeded`; else why not: the compiler's messages with line and column, what
   * limit was exceeded, or how the compiler crashed. */
  TorchLazyBytes bytes;
  int64_t front_end_ns, optimizer_ns, code_generator_ns; /* of processor time */
} TorchLazyCompileResult;

/* The address of a function or object that loaded code refers to, or null where there is none of
 * that name. Called while `load` runs, on its thread; `name` ends in a zero byte. */
typedef void* (*TorchLazyResolve)(void* context, const char* name);

typedef struct TorchLazyCompilerApi {
  int32_t version; /* TORCH_LAZY_COMPILER_API_VERSION of the library */

  /* Null where the target does not exist on this architecture, with `error` (where not null) set.
   */
  TorchLazyCompiler* (*create_compiler)(enum TorchLazyTarget target, TorchLazyBytes* error);
  void (*destroy_compiler)(TorchLazyCompiler* compiler);
  /* Triple, processor, features, options and the compiler's version: objects of compilers with
   * equal descriptions can be exchanged. Valid as long as the compiler. */
  const char* (*describe)(const TorchLazyCompiler* compiler);
  /* Width in bits of the target's widest vector registers: 128, 256 or 512. */
  int32_t (*vector_bits)(const TorchLazyCompiler* compiler);
  /* Never fails otherwise than by `succeeded`. The signal handlers for crashes are the library's
   * while any compile runs, and are what they were again afterwards. */
  TorchLazyCompileResult (*compile)(TorchLazyCompiler* compiler,
                                    const TorchLazyCompileRequest* request);

  /* Null with `error` set where the process cannot be linked into. */
  TorchLazyLoader* (*create_loader)(TorchLazyResolve resolve, void* context, TorchLazyBytes* error);
  /* Unloads what is still loaded. */
  void (*destroy_loader)(TorchLazyLoader* loader);
  /* Copies the object into executable memory and looks up `entry`, an unmangled name. Null with
   * `error` set where that fails. Names in one object hide from all others. */
  TorchLazyCode* (*load)(TorchLazyLoader* loader, const char* object, size_t object_size,
                         const char* entry, void** address, TorchLazyBytes* error);
  /* Before the loader is destroyed. */
  void (*unload)(TorchLazyCode* code);

  void (*release)(TorchLazyBytes* bytes); /* and sets it to empty */
} TorchLazyCompilerApi;

/* Null where the library does not know that version. Valid for the life of the process. */
typedef const TorchLazyCompilerApi* (*TorchLazyCompilerApiFunction)(int32_t version);

#ifdef __cplusplus
}
#endif

#endif /* TORCH_LAZY_COMPILER_API_H */
