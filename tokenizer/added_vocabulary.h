// Added tokens, such as "<|im_start|>". They are cut out of the text, and the model encodes the rest. A Tokenizer owns
// its AddedVocabulary. A loader fills it. Afterwards it is read-only, and any thread may use it.
// Matching follows Hugging Face `tokenizers`: the leftmost match wins, then the longest. Tokens with `normalized` are
// matched after normalization.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace vllm::tokenizer {

struct AddedToken {
  std::string content;
  bool single_word = false;  // does not match next to a word character
  bool lstrip = false;       // the match includes the whitespace before the token
  bool rstrip = false;       // the match includes the whitespace after the token
  bool normalized = true;
  bool special = false;
  int32_t id = -1;
  // `content` after normalization. If `normalized` is set, this is the string to find in the normalized text and the
  // input of the decoder.
  std::string normalized_content;
};

// A part of a text: an added token if id >= 0, otherwise text for the model.
struct Segment {
  size_t begin;
  size_t end;
  int32_t id;
};

class AddedVocabulary {
 public:
  // Limits the length of added tokens, because a search may take this many steps per byte of text.
  static constexpr size_t kMaxTokenBytes = 1024;

  // A later token with the same id replaces the earlier one. Throws TokenizerError if the token is too long.
  void Add(AddedToken token);
  // Prepares the search. Must be called once, after the last Add.
  void Finish();

  bool empty() const { return tokens_.empty(); }
  const AddedToken* FindId(int32_t id) const;
  const AddedToken* FindContent(std::string_view content) const;
  // Returns true if there is a token with this content and it is special.
  bool IsSpecialText(std::string_view text) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

  // Splits text into segments that cover it. Matches only tokens whose `normalized` flag equals the argument
  // `normalized`, and special tokens only if `special` is true. Segments overlap if a token occurs in the whitespace
  // that `rstrip` adds to the match before it.
  void Split(std::string_view text, bool normalized, bool special, std::vector<Segment>& segments) const;

 private:
  struct Pattern {
    std::string_view text;
    const AddedToken* token;
  };
  struct PatternSet {
    std::vector<Pattern> patterns;  // sorted by text
    bool starts[256] = {};          // starts[b] is true if some pattern starts with byte b
  };
  static const Pattern* LongestMatch(const PatternSet& set, std::string_view text);

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  PatternSet raw_;
  PatternSet normalized_;
};

}  // namespace vllm::tokenizer
