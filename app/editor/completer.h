// Completions of a text that the user is typing, which Tab offers. Plain values; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

struct CompletionChoice {
  std::string text;         // replaces the text from Completions::begin on
  std::string description;  // one line, may be empty
  bool is_final = true;     // a blank follows it; false for a directory
};

struct Completions {
  size_t begin = 0;  // byte offset in the text where the choices begin
  // Every choice begins with the text from `begin` on.
  std::vector<CompletionChoice> choices;
};

// Returns the completions at the end of `text`, the beginning of a draft up to the cursor.
using Completer = std::function<Completions(std::string_view text)>;

// Returns the lines that show `choices`, at most `max_lines`, each at most `num_columns` columns wide: one choice and
// its description per line, or several choices per line if none has a description. The text may be untrusted.
std::vector<std::string> CompletionLines(const std::vector<CompletionChoice>& choices, int num_columns,
                                         size_t max_lines);

}  // namespace vllm::app
