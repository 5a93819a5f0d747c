#include "backend/cuda/kernel_library.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <exception>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "backend/cuda/nvrtc.h"
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

std::string program_source(const std::vector<const PrintedKernel*>& kernels) {
  std::set<std::string> functions;
  for (const PrintedKernel* kernel : kernels)
    functions.insert(kernel->functions.begin(), kernel->functions.end());
  std::string source = codegen::prelude_for({.kind = codegen::Target::Kind::kCuda}, functions);
  for (const PrintedKernel* kernel : kernels) source += kernel->source.substr(kernel->body);
  return source;
}

Image compile_image(const std::vector<const PrintedKernel*>& kernels,
                    const std::string& architecture) {
  const std::string source = program_source(kernels);
  const std::string text = describe_compiler(architecture) + '\n' + source;
  const XXH128_hash_t digest = XXH3_128bits(text.data(), text.size());
  return {fmt::format("{:016x}{:016x}", digest.high64, digest.low64),
          compile_program(source, architecture)};
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

std::shared_ptr<const void> load_image(const std::string& image) {
  Library library = nullptr;
  check(driver().load_library(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "compiled kernels cannot be loaded");
  return {library, [](const void* loaded) {
            driver().unload_library(static_cast<Library>(const_cast<void*>(loaded)));
          }};
}

std::shared_ptr<const LoadedKernel> kernel_of(const std::shared_ptr<const void>& library,
                                              const std::string& entry, size_t image_bytes) {
  auto loaded = std::make_shared<LoadedKernel>();
  check(driver().library_kernel(
            &loaded->kernel, static_cast<Library>(const_cast<void*>(library.get())), entry.c_str()),
        fmt::format("kernel {} is not in its image", entry));
  loaded->image_bytes = image_bytes;
  loaded->library = library;
  return loaded;
}

}  // namespace

LoadedKernels KernelLibraries::load(const std::vector<PrintedKernel>& kernels,
                                    const std::string& architecture) {
  const std::string compiler = describe_compiler(architecture);
  const auto find_all = [&](std::vector<const PrintedKernel*>* missing) {
    LoadedKernels found;
    std::set<std::string> listed;
    for (const PrintedKernel& kernel : kernels) {
      const std::string key = key_of(kernel, compiler);
      found.push_back(find(key, kernel.entry));
      if (!found.back() && missing && listed.insert(key).second) missing->push_back(&kernel);
    }
    return found;
  };
  std::vector<const PrintedKernel*> missing;
  LoadedKernels loaded = find_all(&missing);
  if (missing.empty()) return loaded;
  compile(missing, architecture);
  loaded = find_all(nullptr);
  drop_unused();
  return loaded;
}

std::shared_ptr<const LoadedKernel> KernelLibraries::find(const std::string& key,
                                                          const std::string& entry) {
  if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  std::shared_ptr<const LoadedKernel> loaded = from_disk(key, entry);
  if (loaded) add(key, loaded);
  return loaded;
}

// Null where it is not there, or is of no use.
std::shared_ptr<const LoadedKernel> KernelLibraries::from_disk(const std::string& key,
                                                               const std::string& entry) {
  if (!disk_) return nullptr;
  const std::optional<std::string> id = disk_->get(disk_key_of_kernel(key));
  if (!id) return nullptr;
  const PassTimer timer("load");
  const auto loaded = images_.find(*id);
  std::shared_ptr<const void> library = loaded == images_.end() ? nullptr : loaded->second.lock();
  const std::optional<std::string> image =
      library ? std::nullopt : disk_->get(disk_key_of_image(*id));
  if (!library && !image) return nullptr;
  try {
    if (!library) images_[*id] = library = load_image(*image);
    return kernel_of(library, entry, image ? image->size() : 0);  // once for the image
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
    const std::shared_ptr<const void> library = load_image(images[i].bytes);
    images_[images[i].id] = library;
    if (disk_) disk_->put(disk_key_of_image(images[i].id), images[i].bytes);
    for (const PrintedKernel* kernel : programs[i]) {
      const std::string key = key_of(*kernel, compiler);
      add(key, kernel_of(library, kernel->entry, images[i].bytes.size() / programs[i].size()));
      if (disk_) disk_->put(disk_key_of_kernel(key), images[i].id);
    }
  }
}

void KernelLibraries::add(const std::string& key, std::shared_ptr<const LoadedKernel> kernel) {
  bytes_ += kernel->image_bytes;
  kernels_[key] = std::move(kernel);
}

void KernelLibraries::drop_unused() {
  if (bytes_ <= kCacheBytes) return;
  std::erase_if(kernels_, [&](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    bytes_ -= entry.second->image_bytes;
    return true;
  });
  std::erase_if(images_, [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace torch_lazy::cuda
