// A folder of csrc/ includes only folders that stand above it in the table of docs/architecture.md.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace torch_lazy {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TORCH_LAZY_SOURCE_DIR;
const fs::path kSources = kRoot / "csrc";

std::vector<std::string> matches_of_lines(const fs::path& file, const std::regex& pattern) {
  std::vector<std::string> found;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    std::smatch match;
    if (std::regex_search(line, match, pattern)) found.push_back(match[1]);
  }
  return found;
}

// The first column of the table, from the top: "base/", "memory/", ...
std::vector<std::string> folders_in_order() {
  static const std::regex row(R"(^\| `([a-z_/]+/)` \|)");
  return matches_of_lines(kRoot / "docs" / "architecture.md", row);
}

std::vector<std::string> includes_of(const fs::path& file) {
  static const std::regex include(R"re(^\s*#\s*include\s*["<]([^">]+)[">])re");
  return matches_of_lines(file, include);
}

// The place of the innermost folder of the table that the path, relative to csrc/, lies in.
std::optional<size_t> place_of(const std::vector<std::string>& folders, const std::string& path) {
  std::optional<size_t> place;
  for (size_t i = 0; i < folders.size(); ++i)
    if (path.rfind(folders[i], 0) == 0 && (!place || folders[i].size() > folders[*place].size()))
      place = i;
  return place;
}

// What is wrong with an include; empty where it is allowed. A header that is not the project's is
// allowed everywhere.
std::string complaint(const std::vector<std::string>& folders, const std::string& file,
                      const std::string& header) {
  const auto from = place_of(folders, file), to = place_of(folders, header);
  if (!from) return file + " lies in no folder of the table";
  if (!fs::is_regular_file(kSources / header) || (to && *to <= *from)) return {};
  return file + " includes " + header + ", whose folder does not stand above its own";
}

TEST(FolderOrder, EveryIncludeGoesUpTheTable) {
  const std::vector<std::string> folders = folders_in_order();
  size_t files = 0, project_headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSources)) {
    const std::string extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    const std::string file = entry.path().lexically_relative(kSources);
    if (file == "pch.h") continue;  // torch's headers only
    ++files;
    for (const std::string& header : includes_of(entry.path())) {
      project_headers += fs::is_regular_file(kSources / header);
      EXPECT_EQ(complaint(folders, file, header), "");
    }
  }
  EXPECT_GT(files, 100u);
  EXPECT_GT(project_headers, files);
}

TEST(FolderOrder, EveryFolderOfTheTableExists) {
  const std::vector<std::string> folders = folders_in_order();
  ASSERT_GT(folders.size(), 10u);
  for (const std::string& folder : folders)
    EXPECT_TRUE(fs::is_directory(kSources / folder)) << folder;
}

TEST(FolderOrder, EveryFolderSaysItsJobInAReadme) {
  for (const std::string& folder : folders_in_order())
    EXPECT_TRUE(fs::exists(kSources / folder / "README.md")) << folder;
}

TEST(FolderOrder, AnIncludeDownTheTableIsRefused) {
  const std::vector<std::string> folders = {"base/", "backend/", "plan/", "backend/cpu/"};
  EXPECT_EQ(complaint(folders, "plan/x.cpp", "base/config.h"), "");
  EXPECT_EQ(complaint(folders, "backend/cpu/x.cpp", "plan/plan.h"), "");
  EXPECT_EQ(complaint(folders, "plan/x.cpp", "ATen/Tensor.h"), "");
  EXPECT_NE(complaint(folders, "base/x.cpp", "plan/plan.h"), "");
  EXPECT_NE(complaint(folders, "plan/x.cpp", "backend/cpu/kernel_compiler.h"), "");
  EXPECT_NE(complaint(folders, "stray/x.cpp", "base/config.h"), "");
}

}  // namespace
}  // namespace torch_lazy
