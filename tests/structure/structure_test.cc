// Checks rules for the sources that a compiler cannot check: limits on file and directory sizes, opening comments,
// first includes, namespaces, output functions, reasons to skip a test, and words and constructs to avoid.
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

std::vector<Source> SourcesIn(const std::vector<std::string>& directories) {
  std::vector<Source> sources;
  const fs::path root = VLLMCLI_SOURCE_DIR;
  for (const std::string& directory : directories) {
    for (const auto& entry : fs::recursive_directory_iterator(root / directory)) {
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

std::vector<Source> ProductSources() { return SourcesIn(kModules); }

TEST(StructureTest, NoProductSourceHasMoreThan600Lines) {
  for (const Source& source : ProductSources()) EXPECT_LE(source.lines.size(), 600u) << source.path;
}

TEST(StructureTest, NoProductDirectoryHasMoreThan25Files) {
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
  // The words are split, so that a search for them does not find this file.
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

// scripts/list_skipped_tests.sh fails if a test gives another reason, but only on machines where the test is skipped.
TEST(StructureTest, TestsAreSkippedOnlyWithoutReferenceDataOrRoot) {
  const std::string skip = std::string("GTEST_") + "SKIP";  // split, so that this line is not found
  for (const Source& source : SourcesIn({"tests"})) {
    for (const std::string& line : source.lines) {
      if (line.find(skip) == std::string::npos) continue;
      EXPECT_TRUE(line.find(skip + "() << \"reference data not found: ") != std::string::npos ||
                  line.find(skip + "() << \"needs root: ") != std::string::npos)
          << source.path << ": " << line;
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

// If X.cc includes X.h first, compiling X.cc shows that X.h compiles alone.
TEST(StructureTest, SourcesIncludeTheirHeaderFirst) {
  const fs::path root = VLLMCLI_SOURCE_DIR;
  for (const Source& source : ProductSources()) {
    fs::path header = source.path;
    if (header.extension() != ".cc" || !fs::exists(root / header.replace_extension(".h"))) continue;
    const auto first = std::find_if(source.lines.begin(), source.lines.end(),
                                    [](const std::string& line) { return line.rfind("#include", 0) == 0; });
    ASSERT_NE(first, source.lines.end()) << source.path;
    EXPECT_EQ(*first, "#include \"" + header.string() + "\"") << source.path;
  }
}

// The code of a module is in a namespace of the same name: vllm::app, vllm::kernels or vllm::tokenizer. The engine is
// in vllm. Nested namespaces and forward declarations of other modules' types are allowed.
TEST(StructureTest, NamespacesAreNamedAfterTheModule) {
  for (const Source& source : ProductSources()) {
    const std::string module = source.path.substr(0, source.path.find('/'));
    const std::string expected = module == "engine" ? "namespace vllm {" : "namespace vllm::" + module;
    bool is_global = true;
    bool has_expected = false;
    for (const std::string& line : source.lines) {
      if (line.rfind("namespace ", 0) == 0) is_global = false;
      if (line.rfind(expected, 0) == 0) has_expected = true;
    }
    EXPECT_TRUE(is_global || has_expected) << source.path << " has no " << expected;
  }
}

TEST(StructureTest, OnlyAppTerminalWritesToStandardOutputAndError) {
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

// Returns the lines of the sources, scripts and documents that must avoid the words of words.txt.
std::vector<Source> Texts() {
  const fs::path root = VLLMCLI_SOURCE_DIR;
  std::vector<Source> texts;
  for (const char* top :
       {"app", "bench", "cmake", "completions", "docs", "engine", "kernels", "man", "scripts", "tests", "tokenizer"}) {
    for (auto entry = fs::recursive_directory_iterator(root / top); entry != fs::recursive_directory_iterator();
         ++entry) {
      const std::string path = fs::relative(entry->path(), root).string();
      // Excluded: test data, patches, training text of models and tokenizers, and the list of words itself.
      if (path == "tests/data" || path == "tests/mutations" || path == "scripts/guide_model" ||
          path == "app/guide_model") {
        entry.disable_recursion_pending();
        continue;
      }
      const bool is_training_text =
          path == "tests/golden/tokenizer_golden.py" || path == "tests/golden/tokenizer_sentencepiece_golden.py";
      if (!entry->is_regular_file() || is_training_text || path == "tests/structure/words.txt") continue;
      Source text{path, {}};
      std::ifstream file(entry->path());
      for (std::string line; std::getline(file, line);) text.lines.push_back(line);
      texts.push_back(std::move(text));
    }
  }
  return texts;
}

// Returns `line` in lower case, with one space around each word: "TheBlock, the_block" becomes " the block the block ".
std::string WordsOf(const std::string& line) {
  std::string words = " ";
  char previous = ' ';
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isupper(byte) != 0 && std::islower(static_cast<unsigned char>(previous)) != 0) words += ' ';
    if (std::isalnum(byte) != 0 || c == '-') {
      words += static_cast<char>(std::tolower(byte));
    } else if (words.back() != ' ') {
      words += ' ';
    }
    previous = c;
  }
  if (words.back() != ' ') words += ' ';
  return words;
}

TEST(StructureTest, TextsAvoidTheListedWords) {
  std::vector<std::pair<std::string, std::string>> avoided;  // word, replacement
  std::ifstream list(std::string(VLLMCLI_SOURCE_DIR) + "/tests/structure/words.txt");
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t tab = line.find('\t');
    ASSERT_NE(tab, line.npos) << line;
    avoided.emplace_back(" " + line.substr(0, tab) + " ", line.substr(tab + 1));
  }
  ASSERT_GT(avoided.size(), 20u);
  for (const Source& text : Texts()) {
    for (size_t i = 0; i < text.lines.size(); ++i) {
      const std::string words = WordsOf(text.lines[i]);
      for (const auto& [word, replacement] : avoided) {
        EXPECT_EQ(words.find(word), words.npos)
            << text.path << ":" << i + 1 << ": '" << word << "', write: " << replacement << "\n"
            << text.lines[i];
      }
    }
  }
}

}  // namespace
}  // namespace vllm
