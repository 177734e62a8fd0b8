// Checks rules of docs/ARCHITECTURE.md that a compiler cannot check: limits on file and directory sizes, and constructs
// that the product must not contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace vllm {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kModules = {"kernels", "tokenizer", "engine", "app"};

struct Source {
  std::string path;  // relative to the root of the repository
  std::vector<std::string> lines;
};

std::vector<Source> ProductSources() {
  std::vector<Source> sources;
  const fs::path root = VLLMCLI_SOURCE_DIR;
  for (const std::string& module : kModules) {
    for (const auto& entry : fs::recursive_directory_iterator(root / module)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cc" && extension != ".inl") continue;
      Source source{fs::relative(entry.path(), root).string(), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

TEST(StructureTest, NoFileHasMoreThan600Lines) {
  for (const Source& source : ProductSources()) EXPECT_LE(source.lines.size(), 600u) << source.path;
}

TEST(StructureTest, NoDirectoryHasMoreThan25Files) {
  const fs::path root = VLLMCLI_SOURCE_DIR;
  for (const std::string& module : kModules) {
    std::map<std::string, int> num_files;
    for (const auto& entry : fs::recursive_directory_iterator(root / module)) {
      if (entry.is_regular_file()) ++num_files[entry.path().parent_path().string()];
    }
    for (const auto& [directory, count] : num_files) EXPECT_LE(count, 25) << directory;
  }
}

TEST(StructureTest, BannedConstructsDoNotOccur) {
  // The words are split so that this file does not contain them.
  const std::vector<std::string> banned = {std::string("std::") + "regex", std::string("-ffast") + "-math",
                                           std::string("str") + "cpy(", std::string(" spr") + "intf(",
                                           std::string("using names") + "pace std"};
  for (const Source& source : ProductSources()) {
    for (const std::string& line : source.lines) {
      for (const std::string& word : banned)
        EXPECT_EQ(line.find(word), std::string::npos) << source.path << ": " << line;
    }
  }
}

TEST(StructureTest, HeadersOpenWithAComment) {
  for (const Source& source : ProductSources()) {
    if (fs::path(source.path).extension() != ".h") continue;
    ASSERT_FALSE(source.lines.empty()) << source.path;
    EXPECT_EQ(source.lines[0].rfind("// ", 0), 0u) << source.path << " does not open with a comment";
  }
}

// Only app/terminal may write to the terminal.
TEST(StructureTest, OnlyTheTerminalDirectoryWrites) {
  for (const Source& source : ProductSources()) {
    if (source.path.rfind("app/terminal/", 0) == 0) continue;
    for (const std::string& line : source.lines) {
      for (const std::string word : {"std::cout", "std::cerr", "printf(", "fwrite(", "fputs(", "puts("}) {
        const size_t pos = line.find(word);
        const bool whole_word =
            pos != std::string::npos && (pos == 0 || (std::isalnum(line[pos - 1]) == 0 && line[pos - 1] != '_'));
        EXPECT_FALSE(whole_word) << source.path << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace vllm
