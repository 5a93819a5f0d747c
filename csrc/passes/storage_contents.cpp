#include "passes/storage_contents.h"

#include <algorithm>
#include <unordered_set>

#include "passes/storage_regions.h"

namespace torch_lazy {
namespace {

using torch::jit::Node;
using torch::jit::Value;
using Origin = StorageInfo::Origin;

}  // namespace

TensorInfo info_for(const Layout& layout, c10::ScalarType dtype, c10::Device device) {
  return {.dtype = dtype,
          .device = device,
          .sizes = {layout.sizes.begin(), layout.sizes.end()},
          .strides = {layout.strides.begin(), layout.strides.end()}};
}

StorageContents::StorageContents(const StorageAnalysis& analysis, GraphBuilder& builder)
    : analysis_(analysis), builder_(builder), contents_(analysis.storages.size()) {
  for (size_t i = 0; i < contents_.size(); ++i) {
    const StorageInfo& storage = analysis.storages[i];
    Contents& contents = contents_[i];
    contents.reads.resize(storage.views.size());
    if (!storage.written) {  // nothing need be told apart
      contents.regions.resize(1);
      contents.region_of_view.resize(storage.views.size());
      continue;
    }
    StorageRegions regions = split_into_regions(storage);
    contents.region_of_view = std::move(regions.region_of_view);
    for (Layout& layout : regions.layouts) {
      TORCH_CHECK(storage.origin == Origin::kInput || layout == storage.views[0], "a view of %",
                  storage.roots[0].first->debugName(), " leaves its elements");
      contents.regions.push_back({.layout = std::move(layout)});
    }
  }
}

void StorageContents::define(const Value* root, Value* value) {
  const Place& place = analysis_.places.at(root);
  Contents& contents = contents_[place.storage];
  const StorageInfo& storage = analysis_.storages[place.storage];
  const Layout& layout = storage.views[place.view];
  const auto& type = value->type()->expectRef<c10::TensorType>();
  if (type.device()) contents.device = *type.device();
  const auto hold = [&](Region& region) {
    region.base = value;
    region.base_layout = layout;
    region.absolute = storage.origin == Origin::kInput;
  };
  // Any input reaches every region; the one that is the region is better.
  Region& own = region_of(place);
  if (!contents.regions[0].base)
    for (Region& region : contents.regions) hold(region);
  else if (layout == own.layout)
    hold(own);
  if (storage.origin == Origin::kInput) own.inputs.emplace_back(place.view, value);
  contents.reads[place.view] = {value, 0};
}

StorageContents::Region& StorageContents::region_of(const Place& place) {
  Contents& contents = contents_[place.storage];
  return contents.regions[contents.region_of_view[place.view]];
}

Value* StorageContents::strided(const Place& place, const Region& region, const Layout& layout) {
  TORCH_INTERNAL_ASSERT(region.base, "a storage is read before it is made");
  int64_t offset = layout.offset - (region.absolute ? 0 : region.base_layout.offset);
  if (layout.numel() == 0) offset = 0;
  const StorageInfo& storage = analysis_.storages[place.storage];
  return builder_.call("aten::as_strided", "",
                       {region.base, builder_.integers(layout.sizes),
                        builder_.integers(layout.strides), builder_.integer(offset)},
                       info_for(layout, storage.dtype, contents_[place.storage].device));
}

Value* StorageContents::read(const Place& place) {
  const Region& region = region_of(place);
  Read& read = contents_[place.storage].reads[place.view];
  if (read.value && read.version == region.version) return read.value;
  const Layout& layout = analysis_.layout(place);
  Value* value = layout == region.base_layout ? region.base : strided(place, region, layout);
  read = {value, region.version};
  return value;
}

TensorInfo StorageContents::type_to_write(const Place& place) const {
  const Contents& contents = contents_[place.storage];
  const Region& region = contents.regions[contents.region_of_view[place.view]];
  const Layout& layout = analysis_.layout(place);
  const c10::ScalarType dtype = analysis_.storages[place.storage].dtype;
  const bool whole = contains(layout, region.layout);
  return info_for(whole ? layout : dense_layout(layout), dtype, contents.device);
}

Value* StorageContents::writable(Value* value, const TensorInfo& type) {
  if (is_made(value) && info_of(value).same_layout(type)) return value;
  return builder_.clone(value, type);
}

void StorageContents::write(const Place& place, Value* value, size_t origin) {
  const Layout& layout = analysis_.layout(place);
  if (layout.numel() == 0) return;
  Contents& contents = contents_[place.storage];
  const StorageInfo& storage = analysis_.storages[place.storage];
  Region& region = region_of(place);
  if (contains(layout, region.layout)) {
    region.base = writable(value, info_for(layout, storage.dtype, contents.device));
    region.base_layout = layout;
  } else {
    Value* target = region.base;
    if (region.absolute && !(contains(region.base_layout, region.layout) &&
                             has_distinct_elements(region.base_layout))) {
      // A flat part of an input, which the input itself does not cover or has several times, as an
      // expanded one. Its offsets go on counting from the storage's start, as as_strided_scatter
      // counts them on a view of an input.
      target = strided(place, region, region.layout);
      region.base_layout = region.layout;
    }
    const int64_t offset = layout.offset - (region.absolute ? 0 : region.base_layout.offset);
    region.base = builder_.call("aten::as_strided_scatter", "",
                                {target, value, builder_.integers(layout.sizes),
                                 builder_.integers(layout.strides), builder_.integer(offset)},
                                info_for(region.base_layout, storage.dtype, contents.device));
  }
  region.absolute = false;
  region.last_write = origin;
  if (region.version++ == 0 && storage.origin == Origin::kInput)
    written_inputs_.emplace_back(place.storage, contents.region_of_view[place.view]);
}

// A node added at the end stands for what made the value that it takes.
Value* StorageContents::for_end(Value* value, const Value* taken) {
  value->node()->setSourceRange(taken->node()->sourceRange());
  if (taken->node()->hasAttribute(kOriginAttribute))
    value->node()->i_(kOriginAttribute, taken->node()->i(kOriginAttribute));
  return value;
}

Value* StorageContents::destination(uint32_t index, const Region& region) {
  const StorageInfo& storage = analysis_.storages[index];
  const Layout& layout = region.base_layout;
  for (const auto& [view, input] : region.inputs)
    if (storage.views[view] == layout) return input;
  Value* const any = builder_.graph().inputs()[storage.roots[0].first->offset()];
  return for_end(builder_.call("aten::as_strided", "",
                               {any, builder_.integers(layout.sizes),
                                builder_.integers(layout.strides), builder_.integer(layout.offset)},
                               info_for(layout, storage.dtype, contents_[index].device)),
                 region.base);
}

void StorageContents::finish(const std::vector<Place>& roots) {
  std::unordered_set<const Value*> taken;
  for (const auto& [storage, region] : written_inputs_)
    taken.insert(contents_[storage].regions[region].base);
  for (const Place& root : roots) {
    Value* value = read(root);
    if (is_view(value)) for_end(value, region_of(root).base);
    const StorageInfo& storage = analysis_.storages[root.storage];
    if (!is_made(value) || !taken.insert(value).second)
      value = for_end(builder_.clone(value, info_for(analysis_.layout(root), storage.dtype,
                                                     contents_[root.storage].device)),
                      region_of(root).base);
    builder_.graph().registerOutput(value);
  }

  // Destinations first: nothing but writes follows a write.
  std::vector<std::pair<Value*, const Region*>> writes;
  for (const auto& [storage, index] : written_inputs_) {
    const Region& region = contents_[storage].regions[index];
    writes.emplace_back(destination(storage, region), &region);
  }
  for (const auto& [destination, region] : writes) {
    Value* written = for_end(
        builder_.call("aten::copy_", "", {destination, region->base, builder_.boolean(false)},
                      info_of(destination)),
        region->base);
    written->node()->i_(kOriginAttribute, int64_t(region->last_write));
  }
}

}  // namespace torch_lazy
