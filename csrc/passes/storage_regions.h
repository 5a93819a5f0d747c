// Splits a storage into parts that no view crosses: each has contents of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/layout.h"
#include "passes/storage_analysis.h"

namespace torch_lazy {

struct StorageRegions {
  std::vector<Layout> layouts;
  std::vector<uint32_t> region_of_view;  // for each view of the storage; 0 for views of no element
};

// A region has the layout of a root that holds all views in it, or is flat: a range of elements.
// Raises where a view leaves what is known of a storage that the window makes.
StorageRegions split_into_regions(const StorageInfo& storage);

}  // namespace torch_lazy
