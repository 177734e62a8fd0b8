// Tokens added beside the model's vocabulary ("<|im_start|>"): they are cut out of the text before the model sees it.
// Filled by the loader, read-only afterwards and then usable from any thread.
// Matching is the reference's: leftmost, then longest; tokens with `normalized` are looked for after normalization.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vllm {

struct AddedToken {
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = true;
  bool special = false;
  int32_t id = -1;
  // What is looked for in normalized text, and what the decoder is given: `content` after normalization.
  std::string normalized_content;
};

// A part of a text: an added token when id >= 0, else text for the model.
struct Segment {
  size_t begin;
  size_t end;
  int32_t id;
};

class AddedVocabulary {
 public:
  // Longer added tokens are refused: the search costs at most this much per byte of text.
  static constexpr size_t kMaxTokenBytes = 1024;

  // A later token of the same id replaces the earlier one.
  void Add(AddedToken token);
  // Prepares the search. To be called once, after the last Add.
  void Finish();

  bool empty() const { return tokens_.empty(); }
  const AddedToken* FindId(int32_t id) const;
  const AddedToken* FindContent(std::string_view content) const;
  // Whether some special token has this text.
  bool IsSpecialText(std::string_view text) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Cuts text into segments that cover it; only the tokens with `normalized` as asked are looked for, and not the
  // special ones unless `special`.
  void Split(std::string_view text, bool normalized, bool special, std::vector<Segment>& segments) const;

 private:
  struct Pattern {
    std::string_view text;
    const AddedToken* token;
  };
  struct PatternSet {
    std::vector<Pattern> patterns;  // sorted by text
    bool starts[256] = {};          // bytes a pattern starts with
  };
  static const Pattern* LongestMatch(const PatternSet& set, std::string_view text);

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  PatternSet raw_;
  PatternSet normalized_;
};

}  // namespace vllm
