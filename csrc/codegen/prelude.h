// The prelude: the functions that printed kernels are written in, per target. No headers stand
// behind it. See README.md in prelude/ for what there is and how a fragment is written.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/api.h"

namespace torch_lazy::codegen {

struct Target {
  enum class Kind : uint8_t {
    kCpu,   // Clang's vector extensions
    kCuda,  // a vector is a thread's register
  };
  Kind kind = Kind::kCpu;
  // kCpu: of every vector type, whatever its elements. 16 needs AVX-512 (F, BW, DQ, VL), 8 needs
  // AVX2 and FMA; 1 and 4 run on any machine. kCuda: 1.
  int lanes = 1;

  // Loads and stores of a vector cost the same with a mask, so that a loop needs no second body for
  // its end.
  bool masks_are_free() const { return lanes == 16; }
  // Multiplies and adds by one instruction, in one rounding.
  bool has_fma() const { return kind == Kind::kCuda || lanes >= 8; }
  int registers() const { return lanes == 16 ? 32 : 16; }  // of vectors, on a CPU
};

// The source of `functions` and of what these stand on, each piece once, in order. A function is
// named with the type of its first value where it is overloaded: "lazy_exp:v_float",
// "lazy_cast_float:int64", "lazy_select:v_double" (by a and b), "lazy_load_bfloat16",
// "lazy_load_float:int" (the form with a count), "lazy_gather_float:v_int64", "lazy_iota".
// Raises std::invalid_argument that names a function the target lacks.
TORCH_LAZY_API std::string prelude_for(Target target, const std::set<std::string>& functions);

// Whether `function` exists.
TORCH_LAZY_API bool prelude_has(Target target, const std::string& function);

}  // namespace torch_lazy::codegen
