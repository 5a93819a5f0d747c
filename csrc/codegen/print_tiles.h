// Interleaved elements as source: a vector's lanes are far apart in memory, and what lies between
// is what the same lanes read or write in other steps of the reduction dimensions. Internal to the
// printer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "codegen/print_context.h"

namespace torch_lazy::codegen {

struct Tile {
  int64_t stride;  // along the lanes
  int64_t count;   // neighbouring elements of a lane; 1: the steps' elements are no neighbours
};

// How the lanes' elements of an access lie, if that is at a constant stride of 2 to kWidestTile.
std::optional<Tile> tile_of(const PrintContext& context, const Access& access, ExprId predicate);

// A number as an argument of a function that is made for it.
inline std::string constant_argument(int64_t number) {
  return "lazy_constant<" + std::to_string(number) + ">()";
}

// Of a load or store: the tile that is moved as a whole before or after the steps.
std::optional<Tile> whole_tile(const PrintContext& context, const Expr& load);
std::optional<Tile> whole_tile(const PrintContext& context, const Store& store);

// The element of a tile that the step at hand reads or writes.
std::string tile_index(const PrintContext& context, const Access& access);

// One a work item: what is unrolled has no copies of its body.
std::string name_of_loaded_tile(const PrintContext& context, ExprId load);
std::string name_of_stored_tile(const PrintContext& context, uint32_t store);

}  // namespace torch_lazy::codegen
