// What the functions of the prelude should give, to the 64 bits of x87's long double: far beyond
// double's 53, so that its own error (glibc states at most a few units in its last place) does not
// show. The few that glibc lacks are written here.
#pragma once

#include <vector>

namespace torch_lazy::accuracy {

struct Unary {
  const char* op;     // of the loop IR
  const char* eager;  // ATen's operator
  long double (*reference)(long double);
  double float_limit;  // units in the last place
  double double_limit;
  // Near its roots other than 0 a double result is only as accurate as a number of size 1: double's
  // units are those of the result or of 1, whichever is greater.
  bool has_roots = false;
};

struct Binary {
  const char* op;
  const char* eager;
  long double (*reference)(long double, long double);
  double float_limit;
  double double_limit;
};

const std::vector<Unary>& unary_functions();
const std::vector<Binary>& binary_functions();

}  // namespace torch_lazy::accuracy
