// Splits a text into words, which the model encodes separately ("pre_tokenizer" in tokenizer.json). Owned by the
// Tokenizer. Read-only after construction, any thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm::tokenizer {

struct Word {
  std::string_view text;
  // True if the word starts where the whole input starts. Metaspace's prepend_scheme "first" needs it.
  bool at_start;
};

// The output of one step for one batch.
struct WordList {
  std::vector<Word> words;
  std::string owned;           // storage for new text that a step writes
  std::vector<Match> matches;  // scratch memory of the step
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Splits one batch of `word` from `position` on and stores the resulting words, none of them empty, in list.words.
  // Returns the start of the next batch, or word.text.size() if there is none.
  // REQUIRES: `position` is 0 or the previous return value.
  virtual size_t Apply(const Word& word, size_t position, WordList& list) const = 0;
  // Returns the largest factor by which the step can lengthen a word.
  virtual int Growth() const { return 1; }
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  // True if the last step writes the byte-level alphabet, or would if it were not omitted because the model gets raw
  // bytes.
  bool byte_level = false;
};

// Returns no steps if `json` is null. With `leave_bytes`, omits a last step that writes the byte-level alphabet, for
// models that encode raw bytes. Throws TokenizerError if `json` is malformed, has an unsupported type or exceeds the
// limits on steps and growth.
PreTokenizers MakePreTokenizers(const nlohmann::json& json, bool leave_bytes);
// Splits by each regular expression in turn. The model gets the words as raw bytes. Throws TokenizerError if a regular
// expression does not compile.
PreTokenizers ByteLevelPreTokenizers(const std::vector<std::string>& regexes);
// Splits into runs of line feeds and runs of other characters.
PreTokenizers LinePreTokenizers();
// Splits like BERT and puts U+2581 in front of each word.
PreTokenizers MarkedBertPreTokenizers();
// Splits by GPT-2's regular expression. With `add_prefix_space`, first puts a space before a text that does not start
// with one. The model gets the words as raw bytes.
PreTokenizers Gpt2PreTokenizers(bool add_prefix_space);

}  // namespace vllm::tokenizer
