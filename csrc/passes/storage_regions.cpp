#include "passes/storage_regions.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace torch_lazy {
namespace {

// Above this, views with meeting ranges are taken together without looking closer: comparing all
// pairs would take long.
constexpr size_t kPairwiseLimit = 32;

using Views = std::vector<uint32_t>;

class Splitter {
 public:
  explicit Splitter(const StorageInfo& storage) : storage_(storage) {
    result_.region_of_view.resize(storage.views.size());
    group_of_view_.resize(storage.views.size());
  }

  StorageRegions split() {
    Views views(storage_.views.size());
    std::iota(views.begin(), views.end(), 0u);
    views.erase(std::remove_if(views.begin(), views.end(),
                               [&](uint32_t view) { return storage_.views[view].numel() == 0; }),
                views.end());
    std::sort(views.begin(), views.end(), [&](uint32_t a, uint32_t b) {
      return storage_.views[a].offset < storage_.views[b].offset;
    });
    Views meeting;  // their ranges of elements meet
    int64_t end = 0;
    for (const uint32_t view : views) {
      const Layout& layout = storage_.views[view];
      if (!meeting.empty() && layout.offset >= end) {
        add_meeting(meeting);
        meeting.clear();
        end = 0;
      }
      meeting.push_back(view);
      end = std::max(end, layout.end());
    }
    if (!meeting.empty()) add_meeting(meeting);
    if (result_.layouts.empty()) result_.layouts.push_back(storage_.views.front());
    return std::move(result_);
  }

 private:
  // The layout of the root among the views that contains all of them.
  std::optional<Layout> root_of(const Views& views) {
    ++groups_;
    for (const uint32_t view : views) group_of_view_[view] = groups_;
    const Layout* largest = nullptr;
    for (const auto& [value, view] : storage_.roots) {
      if (group_of_view_[view] != groups_) continue;
      const Layout& layout = storage_.views[view];
      if (!largest || layout.numel() > largest->numel()) largest = &layout;
    }
    if (!largest || !has_distinct_elements(*largest)) return std::nullopt;
    for (const uint32_t view : views)
      if (!contains(*largest, storage_.views[view])) return std::nullopt;
    return *largest;
  }

  void add_region(const Layout& layout, const Views& views) {
    for (const uint32_t view : views)
      result_.region_of_view[view] = uint32_t(result_.layouts.size());
    result_.layouts.push_back(layout);
  }

  void add_meeting(const Views& views) {
    if (const auto root = root_of(views)) return add_region(*root, views);
    std::vector<Views> groups;
    if (views.size() <= kPairwiseLimit) groups = separate(views);
    std::vector<Layout> roots;
    for (const Views& group : groups)
      if (const auto root = root_of(group)) roots.push_back(*root);
    if (!groups.empty() && roots.size() == groups.size()) {
      for (size_t i = 0; i < groups.size(); ++i) add_region(roots[i], groups[i]);
      return;
    }
    Layout flat;
    flat.offset = storage_.views[views.front()].offset;
    int64_t end = flat.offset;
    for (const uint32_t view : views) end = std::max(end, storage_.views[view].end());
    flat.sizes = {end - flat.offset};
    flat.strides = {1};
    add_region(flat, views);
  }

  // Groups of views such that views of different groups are disjoint.
  std::vector<Views> separate(const Views& views) const {
    std::vector<Views> groups;
    for (const uint32_t view : views) {
      Views joined{view};
      std::vector<Views> apart;
      for (Views& group : groups) {
        const bool meets = std::any_of(group.begin(), group.end(), [&](uint32_t other) {
          return !disjoint(storage_.views[view], storage_.views[other]);
        });
        if (meets)
          joined.insert(joined.end(), group.begin(), group.end());
        else
          apart.push_back(std::move(group));
      }
      apart.push_back(std::move(joined));
      groups = std::move(apart);
    }
    return groups;
  }

  const StorageInfo& storage_;
  StorageRegions result_;
  std::vector<uint32_t> group_of_view_;  // the last that the view was looked for in
  uint32_t groups_ = 0;
};

}  // namespace

StorageRegions split_into_regions(const StorageInfo& storage) {
  return Splitter(storage).split();
}

}  // namespace torch_lazy
