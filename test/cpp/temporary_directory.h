// A directory for one test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace torch_lazy::tests {

// Empty when it is made; goes with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    // mkdtemp replaces the X with what makes the name unique.
    std::string name = (std::filesystem::temp_directory_path() / "torch_lazy.XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no directory " + name);
    path_ = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace torch_lazy::tests
