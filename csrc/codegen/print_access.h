// Loads and stores as source. Internal to the printer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/print_context.h"
#include "codegen/source_writer.h"

namespace torch_lazy::codegen {

// What moves an address is added where it changes: offset and parallel dimensions once a work item,
// into a pointer of the work item; reduction dimensions and the lanes' index in the loops.
class AccessPrinter {
 public:
  explicit AccessPrinter(const PrintContext& context) : context_(context) {}

  // Defines the work item's pointer of an access, if it needs one that is not there yet.
  void define_pointer(uint32_t buffer, const Access& access, SourceWriter& out);

  std::string load(ExprId id, const Body& body) const;
  std::string store(const Store& store, const Body& body) const;
  // Whether whole vectors of it are stored non-temporally.
  bool is_nontemporal(const Store& store) const;

  // Elements that lie one after the other along the lanes, wherever a row of them is.
  bool is_row_of_memory(ExprId load) const;
  bool is_row_of_memory(const Store& store) const;
  // Where the work item's row of such a load begins.
  std::string row_pointer(ExprId load) const;

  // Of the first lane's element.
  std::string address(uint32_t buffer, const Access& access, const Body& body) const;
  // Of the element at `index` along the lanes.
  std::string address_at(uint32_t buffer, const Access& access, const std::string& index) const;
  // Loads a square of jammed steps.
  std::string load_square(ExprId load, const Body& body) const;
  // Of a load that is transposed, where threads run along the transposed dimension and `row` along
  // the lanes'.
  std::string transposed_address(ExprId load) const;
  // How many of the lanes are inside of the loop's range.
  std::string count(const Body& body) const;
  // The same as an argument of functions that are made for constants.
  std::string constant_count(const Body& body) const;

 private:
  bool is_row_of_memory(const Access& access, ExprId predicate) const;
  std::string work_item_offset(const Access& access) const;
  std::string lane_indices(const Access& access, const Body& body) const;
  std::string mask(ExprId predicate, const Body& body) const;
  std::string only_once() const;
  bool has_vector_index(const Access& access) const;
  Size lane_stride(const Access& access) const;
  // All lanes' elements lie one after the other.
  bool is_contiguous(const Access& access) const;

  const PrintContext& context_;
  std::map<std::string, std::string> pointers_;  // by the address that they hold
  size_t defined_ = 0;
};

}  // namespace torch_lazy::codegen
