#include "backend/cuda/kernel_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/cuda/nvrtc.h"
#include "base/config.h"
#include "base/disk_cache.h"
#include "base/pass_times.h"

namespace torch_lazy::cuda {
namespace {

using codegen::PrintedKernel;

// From there on kernels that no executable has are forgotten.
constexpr size_t kCacheBytes = 64 << 20;

// For fewer kernels another thread would mostly compile the prelude again.
constexpr size_t kKernelsPerProgram = 8;

struct Image {
  std::string id;  // that of its program
  std::string bytes;
};

std::string key_of(const PrintedKernel& kernel, const std::string& compiler) {
  return compiler + '\n' + kernel.source;
}

std::string disk_key_of_kernel(const std::string& key) {
  return "kernel\n" + key;
}

std::string disk_key_of_image(const std::string& id) {
  return "image\n" + id;
}

std::string prelude_of(const std::vector<const PrintedKernel*>& kernels) {
  std::set<std::string> functions;
  for (const PrintedKernel* kernel : kernels)
    functions.insert(kernel->functions.begin(), kernel->functions.end());
  return codegen::prelude_for({.kind = codegen::Target::Kind::kCuda}, functions);
}

size_t lines_of(std::string_view text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The error of a program, as that of the kernel where it is: with the line of the kernel's source,
// numbered as in debug output, which has the comments, and the lines of the script.
std::string describe(const CompileError& error, std::string_view prelude,
                     const std::vector<const PrintedKernel*>& kernels) {
  size_t line = error.line;
  const size_t lines_before = lines_of(prelude);
  if (line <= lines_before) return fmt::format("kernels do not compile: {}", error.what());
  line -= lines_before;
  for (const PrintedKernel* kernel : kernels) {
    const std::string_view source = kernel->source;
    std::istringstream body(std::string(source.substr(kernel->body)));
    std::string text;
    for (size_t i = 1; std::getline(body, text); ++i) {
      if (i < line) continue;
      text.erase(0, text.find_first_not_of(' '));
      const size_t number = lines_of(source.substr(0, kernel->body)) + kernel->comments.size() + i;
      const std::string recorded =
          kernel->comments.empty() ? "" : fmt::format(" ({})", fmt::join(kernel->comments, ", "));
      return fmt::format("the kernel {}{} does not compile: line {}, `{}`: {}", kernel->entry,
                         recorded, number, text, error.what());
    }
    line -= lines_of(source.substr(kernel->body));
  }
  return fmt::format("kernels do not compile: {}", error.what());
}

Image compile_image(const std::vector<const PrintedKernel*>& kernels,
                    const std::string& architecture) {
  const std::string prelude = prelude_of(kernels);
  std::string source = prelude;
  for (const PrintedKernel* kernel : kernels) source += kernel->source.substr(kernel->body);
  const std::string text = describe_compiler(architecture) + '\n' + source;
  const XXH128_hash_t digest = XXH3_128bits(text.data(), text.size());
  try {
    return {fmt::format("{:016x}{:016x}", digest.high64, digest.low64),
            compile_program(source, architecture)};
  } catch (const CompileError& error) {
    throw std::runtime_error(describe(error, prelude, kernels));
  }
}

// Programs of about equally many kernels, one a thread.
std::vector<std::vector<const PrintedKernel*>> programs_of(
    const std::vector<const PrintedKernel*>& kernels) {
  const size_t most = std::max(1u, std::thread::hardware_concurrency() / 2);
  const size_t count = std::clamp<size_t>(kernels.size() / kKernelsPerProgram, 1, most);
  std::vector<std::vector<const PrintedKernel*>> programs(count);
  for (size_t i = 0; i < kernels.size(); ++i) programs[i % count].push_back(kernels[i]);
  return programs;
}

Library handle_of(const std::shared_ptr<const void>& library) {
  return static_cast<Library>(const_cast<void*>(library.get()));
}

std::shared_ptr<const LoadedKernel> kernel_of(std::shared_ptr<const void> library,
                                              const std::string& entry) {
  auto loaded = std::make_shared<LoadedKernel>();
  check(driver().library_kernel(&loaded->kernel, handle_of(library), entry.c_str()),
        fmt::format("kernel {} is not in its image", entry));
  loaded->library = std::move(library);
  return loaded;
}

}  // namespace

std::unique_ptr<DiskCache> open_kernel_cache() {
  if (config().cache_bytes <= 0 || config().cache_directory.empty()) return nullptr;
  return std::make_unique<DiskCache>(std::filesystem::path(config().cache_directory) / "cuda",
                                     config().cache_bytes);
}

LoadedKernels KernelLibraries::load(const std::vector<PrintedKernel>& kernels,
                                    const std::string& architecture) {
  const DuringCaptures relaxed;
  const std::string compiler = describe_compiler(architecture);
  LoadedKernels loaded;
  std::vector<std::string> keys;
  std::set<std::string_view> listed;
  std::vector<const PrintedKernel*> missing;
  keys.reserve(kernels.size());  // `listed` refers to what is in it
  for (const PrintedKernel& kernel : kernels) {
    const std::string& key = keys.emplace_back(key_of(kernel, compiler));
    loaded.push_back(find(key, kernel.entry));
    if (!loaded.back() && listed.insert(key).second) missing.push_back(&kernel);
  }
  if (!missing.empty()) compile(missing, architecture);
  for (size_t i = 0; i < kernels.size(); ++i)
    if (!loaded[i]) loaded[i] = kernels_.at(keys[i]);
  drop_unused();
  return loaded;
}

std::shared_ptr<const LoadedKernel> KernelLibraries::find(const std::string& key,
                                                          const std::string& entry) {
  if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  std::shared_ptr<const LoadedKernel> loaded = from_disk(key, entry);
  if (loaded) kernels_[key] = loaded;
  return loaded;
}

// Null where it is not there, or is of no use.
std::shared_ptr<const LoadedKernel> KernelLibraries::from_disk(const std::string& key,
                                                               const std::string& entry) {
  if (!disk_) return nullptr;
  const std::optional<std::string> id = disk_->get(disk_key_of_kernel(key));
  if (!id) return nullptr;
  const PassTimer timer("load");
  const auto known = images_.find(*id);
  std::shared_ptr<const void> library =
      known == images_.end() ? nullptr : known->second.library.lock();
  try {
    if (!library) {
      const std::optional<std::string> image = disk_->get(disk_key_of_image(*id));
      if (!image) return nullptr;
      library = load_image(*id, *image);
    }
    return kernel_of(std::move(library), entry);
  } catch (const c10::Error&) {
    disk_->remove(disk_key_of_image(*id));
    return nullptr;
  }
}

void KernelLibraries::compile(const std::vector<const PrintedKernel*>& kernels,
                              const std::string& architecture) {
  const PassTimer timer("nvrtc");
  const auto programs = programs_of(kernels);
  std::vector<Image> images(programs.size());
  std::vector<std::exception_ptr> errors(programs.size());
  const auto compile_one = [&](size_t i) {
    try {
      images[i] = compile_image(programs[i], architecture);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  size_t left = 1;  // of the programs: the first that no other thread has
  try {
    for (; left < programs.size(); ++left) others.emplace_back(compile_one, left);
  } catch (const std::system_error&) {  // the system has no more threads
  }
  compile_one(0);
  for (; left < programs.size(); ++left) compile_one(left);
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  const std::string compiler = describe_compiler(architecture);
  for (size_t i = 0; i < programs.size(); ++i) {
    const std::shared_ptr<const void> library = load_image(images[i].id, images[i].bytes);
    if (disk_) disk_->put(disk_key_of_image(images[i].id), images[i].bytes);
    for (const PrintedKernel* kernel : programs[i]) {
      const std::string key = key_of(*kernel, compiler);
      kernels_[key] = kernel_of(library, kernel->entry);
      if (disk_) disk_->put(disk_key_of_kernel(key), images[i].id);
    }
  }
}

std::shared_ptr<const void> KernelLibraries::load_image(const std::string& id,
                                                        const std::string& image) {
  Library loaded = nullptr;
  check(driver().load_library(&loaded, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "compiled kernels cannot be loaded");
  std::shared_ptr<const void> library(loaded, [loaded](const void*) {
    const DuringCaptures relaxed;  // on the thread that drops the last plan
    driver().unload_library(loaded);
  });
  images_[id] = {library, image.size()};
  return library;
}

void KernelLibraries::drop_unused() {
  size_t bytes = 0;
  for (const auto& [id, image] : images_)
    if (!image.library.expired()) bytes += image.bytes;
  if (bytes <= kCacheBytes) return;
  std::erase_if(kernels_, [](const auto& entry) { return entry.second.use_count() == 1; });
  std::erase_if(images_, [](const auto& entry) { return entry.second.library.expired(); });
}

}  // namespace torch_lazy::cuda
