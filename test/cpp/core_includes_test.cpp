// The core knows backends by their interface alone.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace torch_lazy {
namespace {

namespace fs = std::filesystem;

const fs::path kSources = fs::path(TORCH_LAZY_SOURCE_DIR) / "csrc";
const std::vector<std::string> kCoreFolders = {"device", "trace", "ir", "runtime"};

// Headers of this project that the file includes, as written.
std::vector<std::string> includes_of(const fs::path& file) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  std::vector<std::string> found;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) found.push_back(match[1]);
  }
  return found;
}

// Of a concrete backend: in a folder of backend/, not in backend/ itself.
bool is_concrete_backend(const std::string& header) {
  return header.rfind("backend/", 0) == 0 && header.find('/', 8) != std::string::npos;
}

TEST(CoreIncludes, NoConcreteBackend) {
  std::vector<std::string> folders = kCoreFolders;
  if (fs::exists(kSources / "graph")) folders.push_back("graph");
  size_t files = 0, project_headers = 0;
  for (const std::string& folder : folders) {
    ASSERT_TRUE(fs::is_directory(kSources / folder)) << folder;
    for (const auto& entry : fs::recursive_directory_iterator(kSources / folder)) {
      if (!entry.is_regular_file()) continue;
      ++files;
      for (const std::string& header : includes_of(entry.path())) {
        project_headers += fs::exists(kSources / header);
        EXPECT_FALSE(is_concrete_backend(header)) << entry.path() << " includes " << header;
      }
    }
  }
  // The scan saw the sources and understood their includes.
  EXPECT_GT(files, 20u);
  EXPECT_GT(project_headers, files);
}

TEST(CoreIncludes, TellsAConcreteBackendFromTheInterface) {
  EXPECT_TRUE(is_concrete_backend("backend/reference/reference_backend.h"));
  EXPECT_FALSE(is_concrete_backend("backend/backend.h"));
  EXPECT_FALSE(is_concrete_backend("ATen/backend/x.h"));
}

}  // namespace
}  // namespace torch_lazy
