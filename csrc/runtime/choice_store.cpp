#include "runtime/choice_store.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "backend/processor_name.h"
#include "backend/registry.h"
#include "base/config.h"
#include "runtime/disk_store.h"

namespace torch_lazy {
namespace {

constexpr const char* kChoiceFormat = "choice 2";
// A choice is a few dozen bytes, so these are tens of thousands.
constinit DiskStore choice_store{"choices", int64_t{4} << 20};

}  // namespace

std::string choice_key(const std::string& backend, const GraphHash& hash,
                       const CompileOptions& options) {
  std::string key = fmt::format(
      "{}\n{}\n{} on {} with {}, {} threads, {}\n{} {}\n", kChoiceFormat, this_build(), backend,
      backend_by_name(backend).device_name(), processor_name(), at::get_num_threads(),
      config().rematerialize_bytes.load(), hash.hex(), options.device.str());
  for (const GraphInput& input : options.inputs)
    key +=
        fmt::format("{} {} {} {}\n", input.storage, input.storage_bytes, input.offset, input.cpu);
  return key;
}

std::optional<Choice> recall_choice(const std::string& key) {
  DiskCache* const kept = choice_store.get();
  const std::optional<std::string> text = kept ? kept->get(key) : std::nullopt;
  return text ? choice_from_string(*text) : std::nullopt;
}

void remember_choice(const std::string& key, const Choice& choice) {
  if (DiskCache* const kept = choice_store.get()) kept->put(key, to_string(choice));
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
