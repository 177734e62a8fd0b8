#include "app/editor/readline_matches.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/unicode/utf8.h"

// After the standard headers, because this header needs FILE.
#include <readline/readline.h>

namespace vllm::app {

char** ReadlineMatches(const Completions& completions, size_t start) {
  std::vector<std::string> texts;
  for (const CompletionChoice& choice : completions.choices) {
    std::string text = choice.text;
    if (completions.begin < start) {
      text.erase(0, std::min(text.size(), start - completions.begin));
    } else {
      text.insert(0, rl_line_buffer + start, completions.begin - start);
    }
    texts.push_back(std::move(text));
  }
  std::string common = texts.front();
  for (const std::string& text : texts) {
    const auto mismatch = std::mismatch(common.begin(), common.end(), text.begin(), text.end());
    common.erase(mismatch.first, common.end());
  }
  // The common part must not end inside a character.
  while (!common.empty() && common.size() < texts.front().size() &&
         tokenizer::IsUtf8Continuation(texts.front()[common.size()])) {
    common.pop_back();
  }
  const bool is_single = texts.size() == 1;
  rl_completion_append_character = is_single && completions.choices.front().is_final ? ' ' : '\0';
  // The common part, the choices if there are several, and null.
  const size_t num_choices = is_single ? 0 : texts.size();
  auto** matches = static_cast<char**>(std::calloc(num_choices + 2, sizeof(char*)));
  if (matches == nullptr) return nullptr;
  matches[0] = strdup(common.c_str());
  for (size_t i = 0; i < num_choices; ++i) matches[i + 1] = strdup(texts[i].c_str());
  return matches;
}

}  // namespace vllm::app
