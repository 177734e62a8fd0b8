// Splits a text into words, each of which the model encodes by itself ("pre_tokenizer" in tokenizer.json).
// Read-only after construction, any thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm {

struct Word {
  std::string_view text;
  // The word begins where the whole input began (Metaspace's prepend_scheme "first" asks).
  bool at_start;
};

// What one step makes of a word, a batch at a time; a step that writes new text keeps it here.
struct WordList {
  std::vector<Word> words;
  std::string owned;
  std::vector<Match> matches;  // work space of the step
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Puts into `list` the words that `word` splits into from `position` on, as many as make a batch; none of them is
  // empty. Returns where the next batch starts, word.text.size() when there is none.
  // REQUIRES: `position` is 0 or what the call before returned.
  virtual size_t Apply(const Word& word, size_t position, WordList& list) const = 0;
  // By how much it can lengthen a word at most.
  virtual int Growth() const { return 1; }
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  // The last step is to write words in the byte-level alphabet.
  bool byte_level = false;
};

// No steps when `json` is null. With `leave_bytes` a last step that writes the byte-level alphabet is left out, for a
// model that takes the bytes. Throws TokenizerError, by name for a type that is not supported.
PreTokenizers MakePreTokenizers(const nlohmann::json& json, bool leave_bytes);
// Splits by each expression in turn, then bytes (left out). Throws TokenizerError when an expression does not compile.
PreTokenizers ByteLevelPreTokenizers(const std::vector<std::string>& regexes);
// What BERT has, and each word marked by U+2581 in front.
PreTokenizers MarkedBertPreTokenizers();
// What GPT-2 has: its regular expression, then bytes (left out).
PreTokenizers Gpt2PreTokenizers(bool add_prefix_space);

}  // namespace vllm
