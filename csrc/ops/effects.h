// What an operator reads, writes and aliases: decided here and nowhere else.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <vector>

namespace torch_lazy {

enum class ReturnKind : uint8_t {
  Fresh,      // memory of its own
  SameAs,     // the very tensor (or list) given as the argument: in-place and out= operators
  AliasOf,    // another tensor over the argument's storage: views
  MayAlias,   // either of Fresh, SameAs and AliasOf, depending on values of the call
  NotTensor,  // a number, a string, ...
};

struct ReturnEffect {
  ReturnKind kind = ReturnKind::Fresh;
  // Position in the schema of the argument that SameAs, AliasOf and MayAlias speak of; else -1.
  // Where an operator may return any of several arguments, this is the first.
  int argument = -1;
};

struct ArgumentEffect {
  bool tensor =
      false;  // a tensor, an optional one, or a list of them; all else is never read or written
  bool reads = false;   // the values of its elements matter
  bool writes = false;  // elements, or in the case of inplace_view metadata, are changed
  bool out = false;     // an out= argument: written only, and resized where it does not fit
};

struct Effects {
  std::vector<ArgumentEffect> arguments;  // in schema order
  std::vector<ReturnEffect> returns;

  // An operator that is not known may do anything: run it alone, after all before it.
  bool known = false;
  // Draws from, or sets, a generator's state: two calls alike give different results.
  bool random = false;
  // Can raise because of the values in its tensors (an index out of range, a singular matrix): must
  // neither be removed nor moved over a write that a caller could see.
  bool fails_on_data = false;
  // Shapes, numbers returned to the caller, or errors that it is likely to catch, depend on values
  // in tensors.
  bool data_dependent_output = false;
  // Qualifies data_dependent_output: only where an index is a mask (bool or uint8).
  bool data_dependent_only_with_masks = false;
  // Changes sizes, strides, offset or storage of its first argument.
  bool inplace_view = false;
  // Gives every element of its first argument a new value without reading the old: a write before
  // it is dead.
  bool overwrites_first_argument = false;

  bool writes_any() const {
    for (const ArgumentEffect& argument : arguments) {
      if (argument.writes) return true;
    }
    return false;
  }
  // Looks at metadata alone: nothing of it needs memory that its arguments have not.
  bool only_views() const {
    for (const ReturnEffect& result : returns)
      if (result.kind != ReturnKind::AliasOf) return false;
    return pure() && !inplace_view;
  }
  // Computes its returns from its arguments and does nothing else: may be removed if unused, and
  // merged with an equal call.
  bool pure() const {
    return known && !returns.empty() && !random && !fails_on_data && !data_dependent_output &&
           !writes_any();
  }
};

// Thread safe; one probe of a table once an operator has been seen. The reference stays valid for
// the life of the process. An operator outside aten and prims is not known: its schema may say
// anything.
const Effects& effects_of(const c10::OperatorHandle& op);

}  // namespace torch_lazy
