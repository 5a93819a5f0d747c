#include "runtime/choice_store.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/version.h>

#include <dlfcn.h>

#include <filesystem>
#include <sstream>
#include <system_error>

#include "backend/processor_name.h"
#include "base/config.h"
#include "base/disk_cache.h"
#include "base/metrics.h"

namespace torch_lazy {
namespace {

constexpr const char* kFormat = "choice 1";
// A choice is a few dozen bytes, so these are tens of thousands.
constexpr int64_t kMostBytes = int64_t{4} << 20;

// Null where nothing is to be kept. Its hits and misses are no kernels', and counted apart.
DiskCache* store() {
  static DiskCache* const instance = []() -> DiskCache* {
    if (config().cache_bytes == 0 || config().cache_directory.empty()) return nullptr;
    return new DiskCache(std::filesystem::path(config().cache_directory) / "choices", kMostBytes,
                         *new Metrics::ByName);
  }();
  return instance;
}

// Another build may make other kernels of the same graph.
std::string this_build() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&recall_choice), &info) == 0) return "";
  std::error_code failed;
  const auto time = std::filesystem::last_write_time(info.dli_fname, failed);
  const auto bytes = std::filesystem::file_size(info.dli_fname, failed);
  return fmt::format("{} {}", time.time_since_epoch().count(), bytes);
}

}  // namespace

std::string choice_key(const std::string& backend, const GraphHash& hash,
                       const CompileOptions& options) {
  static const std::string build = this_build();
  std::string key =
      fmt::format("{}\nbuild {} torch {}\n{} on {}, {} threads, {}\n{} {}\n", kFormat, build,
                  TORCH_VERSION, backend, processor_name(), at::get_num_threads(),
                  config().rematerialize_bytes.load(), hash.hex(), options.device.str());
  for (const GraphInput& input : options.inputs)
    key +=
        fmt::format("{} {} {} {}\n", input.storage, input.storage_bytes, input.offset, input.cpu);
  return key;
}

std::optional<Choice> recall_choice(const std::string& key) {
  DiskCache* const kept = store();
  const std::optional<std::string> text = kept ? kept->get(key) : std::nullopt;
  return text ? choice_from_string(*text) : std::nullopt;
}

void remember_choice(const std::string& key, const Choice& choice) {
  if (DiskCache* const kept = store()) kept->put(key, to_string(choice));
}

std::string to_string(const Choice& choice) {
  return fmt::format("{}\n{}", name(choice.kind), fmt::join(choice.library_operations, " "));
}

std::optional<Choice> choice_from_string(const std::string& text) {
  std::istringstream stream(text);
  std::string kind;
  std::getline(stream, kind);
  for (const ChoiceKind known :
       {ChoiceKind::kAsCompiled, ChoiceKind::kLibraryCalls, ChoiceKind::kPartlyLibraryCalls}) {
    if (kind != name(known)) continue;
    Choice choice{known};
    for (int64_t operation = 0; stream >> operation;)
      choice.library_operations.push_back(operation);
    if (!stream.eof() ||
        choice.library_operations.empty() != (known != ChoiceKind::kPartlyLibraryCalls))
      return std::nullopt;
    return choice;
  }
  return std::nullopt;
}

}  // namespace torch_lazy
