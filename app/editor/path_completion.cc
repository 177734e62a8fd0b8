#include "app/editor/path_completion.h"

#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

std::string EscapePath(std::string_view path) {
  std::string word;
  for (const char c : path) {
    if (c == ' ' || c == '\t' || c == '\n' || c == '\\') word += '\\';
    word += c;
  }
  return word;
}

std::string UnescapePath(std::string_view word) {
  std::string path;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == '\\' && i + 1 < word.size()) ++i;
    path += word[i];
  }
  return path;
}

std::string ExpandHome(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  return home == nullptr || *home != '/' ? path : home + path.substr(1);
}

std::string TypedPath(std::string_view word) { return ExpandHome(UnescapePath(word)); }

std::vector<CompletionChoice> PathChoices(std::string_view word) {
  constexpr size_t kMaxChoices = 1000;
  const std::string typed = UnescapePath(word);
  const size_t slash = typed.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  const std::string beginning = typed.substr(directory.size());
  std::vector<CompletionChoice> choices;
  const std::string opened = directory.empty() ? "." : ExpandHome(directory);
  for (const std::string& name : tokenizer::NamesInDirectory(opened)) {
    if (choices.size() == kMaxChoices) break;
    if (!name.starts_with(beginning) || (beginning.empty() && name.front() == '.')) continue;
    struct stat status {};
    if (stat((opened + "/" + name).c_str(), &status) != 0) continue;
    if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode)) continue;
    const bool is_directory = S_ISDIR(status.st_mode);
    std::string text = EscapePath(directory + name) + (is_directory ? "/" : "");
    if (text.starts_with(word)) choices.push_back({std::move(text), "", !is_directory});
  }
  return choices;
}

}  // namespace vllm::app
