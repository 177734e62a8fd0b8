// The house rules of docs/ARCHITECTURE.md that a compiler cannot check: which room may include which, how long a file
// may be, and what may not occur in the product.
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

// Low to high. A file may include its own room and those before it that are on its floor's list.
const std::vector<std::string> kFloors = {"kernels", "tokenizer", "engine", "app"};
const std::vector<std::string> kEngineRooms = {"config", "request", "kv_cache", "sched",    "model_loader", "layers",
                                               "models", "sample",  "worker",   "executor", "core",         "frontend"};

struct Source {
  std::string path;  // from the root of the repository
  std::vector<std::string> lines;
};

std::vector<Source> ProductSources() {
  std::vector<Source> sources;
  const fs::path root = VLLMCLI_SOURCE_DIR;
  for (const std::string& floor : kFloors) {
    for (const auto& entry : fs::recursive_directory_iterator(root / floor)) {
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

std::vector<std::string> ProjectIncludes(const Source& source) {
  std::vector<std::string> includes;
  for (const std::string& line : source.lines) {
    if (line.rfind("#include \"", 0) != 0) continue;
    const size_t begin = line.find('"') + 1;
    includes.push_back(line.substr(begin, line.find('"', begin) - begin));
  }
  return includes;
}

std::string Part(const std::string& path, size_t index) {
  const fs::path p = path;
  auto it = p.begin();
  for (size_t i = 0; i < index && it != p.end(); ++i) ++it;
  return it == p.end() ? "" : it->string();
}

size_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

TEST(HouseTest, NoFloorIncludesAHigherOne) {
  for (const Source& source : ProductSources()) {
    const std::string floor = Part(source.path, 0);
    for (const std::string& include : ProjectIncludes(source)) {
      const std::string other = Part(include, 0);
      ASSERT_LT(IndexOf(kFloors, other), kFloors.size()) << source.path << " includes " << include << ": not a floor";
      EXPECT_LE(IndexOf(kFloors, other), IndexOf(kFloors, floor)) << source.path << " includes " << include;
      // The two lowest know nothing of each other.
      EXPECT_FALSE(floor == "tokenizer" && other == "kernels") << source.path;
    }
  }
}

TEST(HouseTest, NoRoomOfTheEngineIncludesAHigherOne) {
  for (const Source& source : ProductSources()) {
    if (Part(source.path, 0) != "engine") continue;
    const size_t room = IndexOf(kEngineRooms, Part(source.path, 1));
    ASSERT_LT(room, kEngineRooms.size()) << source.path << " is in a room that is not on the plan";
    for (const std::string& include : ProjectIncludes(source)) {
      if (Part(include, 0) != "engine") continue;
      EXPECT_LE(IndexOf(kEngineRooms, Part(include, 1)), room) << source.path << " includes " << include;
    }
  }
}

TEST(HouseTest, NumbersMoveWithoutTensors) {
  for (const Source& source : ProductSources()) {
    const std::string room = Part(source.path, 1);
    if (Part(source.path, 0) != "engine" || (room != "kv_cache" && room != "sched")) continue;
    for (const std::string& include : ProjectIncludes(source)) {
      if (include == "kernels/check.h") continue;  // the one header there that has no tensors
      EXPECT_NE(Part(include, 0), "kernels") << source.path;
    }
  }
}

TEST(HouseTest, NoIncludesInACircle) {
  std::map<std::string, std::vector<std::string>> graph;
  for (const Source& source : ProductSources()) graph[source.path] = ProjectIncludes(source);
  // Take away what includes nothing that is left; what then remains is in a circle or above one.
  for (bool moved = true; moved;) {
    moved = false;
    for (auto it = graph.begin(); it != graph.end();) {
      const bool leaf =
          std::none_of(it->second.begin(), it->second.end(), [&](const std::string& i) { return graph.contains(i); });
      if (leaf) {
        it = graph.erase(it);
        moved = true;
      } else {
        ++it;
      }
    }
  }
  for (const auto& [path, includes] : graph) ADD_FAILURE() << path << " is part of a circle of includes";
}

TEST(HouseTest, FilesStayShort) {
  std::vector<size_t> lengths;
  for (const Source& source : ProductSources()) {
    EXPECT_LE(source.lines.size(), 600u) << source.path;
    lengths.push_back(source.lines.size());
  }
  std::sort(lengths.begin(), lengths.end());
  EXPECT_LT(lengths[lengths.size() / 2], 150u);
}

TEST(HouseTest, NothingBannedOccurs) {
  // Taken apart so that this file does not contain them.
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

TEST(HouseTest, HeadersSayWhatTheyAre) {
  for (const Source& source : ProductSources()) {
    if (fs::path(source.path).extension() != ".h") continue;
    ASSERT_FALSE(source.lines.empty()) << source.path;
    EXPECT_EQ(source.lines[0].rfind("// ", 0), 0u) << source.path << " does not open with what it is";
  }
}

// Terminal output goes through app/terminal only.
TEST(HouseTest, OnlyTheTerminalRoomWrites) {
  for (const Source& source : ProductSources()) {
    if (source.path.rfind("app/terminal/", 0) == 0) continue;
    for (const std::string& line : source.lines) {
      for (const std::string word : {"std::cout", "std::cerr", "printf(", "fwrite(", "fputs(", "puts("}) {
        const size_t at = line.find(word);
        const bool whole_word =
            at != std::string::npos && (at == 0 || (std::isalnum(line[at - 1]) == 0 && line[at - 1] != '_'));
        EXPECT_FALSE(whole_word) << source.path << ": " << line;
      }
    }
  }
}

}  // namespace
}  // namespace vllm
