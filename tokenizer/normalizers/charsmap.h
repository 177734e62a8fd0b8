// SentencePiece's precompiled character map ("nmt_nfkc" and others): rules that replace sequences of bytes. Owned by a
// normalizer. Read-only after construction, any thread. A search never reads outside the map, even in a damaged file.
//
//   map         := trie_bytes:u32le  unit:u32le{trie_bytes / 4}  (text 00)*
//   unit        a node of a double-array trie. Bits 0-7 are its byte ("label"); bit 31 is 0. Bit 8 is set if a rule
//               ends here. Bits 10-30 are the offset to its children, shifted left by 8 if bit 9 is set. The unit of a
//               rule has bit 31 set; its other bits are the position of the replacement in the bytes after the trie.
// For node n with unit u: the child for byte b is at n ^ offset(u) ^ b if the label there is b. The rule that ends at n
// is at n ^ offset(u).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

class Charsmap {
 public:
  struct Rule {
    size_t length = 0;  // number of bytes to replace; 0 if there is no rule
    std::string_view replacement;
  };

  // If `bytes` is empty, the map has no rules. Throws TokenizerError if the size of the map or the trie is invalid or
  // the replacements are not valid UTF-8. `where` names the source in error messages.
  Charsmap(std::string_view bytes, const std::string& where);

  // Return the rule for the longest or shortest prefix of `text` that has one. REQUIRES: text is valid UTF-8.
  Rule Longest(std::string_view text) const { return Search(text, /*longest=*/true); }
  Rule Shortest(std::string_view text) const { return Search(text, /*longest=*/false); }

  // Returns the length of the longest replacement in bytes; at least 1.
  size_t LongestReplacement() const { return longest_replacement_; }
  bool empty() const { return units_.empty(); }

 private:
  Rule Search(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  size_t longest_replacement_ = 1;
};

}  // namespace vllm::tokenizer
