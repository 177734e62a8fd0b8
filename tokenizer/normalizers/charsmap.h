// SentencePiece's precompiled character map ("nmt_nfkc" and the like): rules that replace sequences of bytes.
// Read-only after construction, any thread; every step stays inside the map whatever the file says.
//
//   map         := trie_bytes:u32le  unit:u32le{trie_bytes / 4}  (text 00)*
//   unit        a node of a double array: bit 31 and bits 0-7 its byte ("label"), bit 8 whether a rule ends here,
//               bits 10-30 the offset to its children, shifted by 8 when bit 9 is set; a rule's own unit has bit 31
//               set and in the others the position of its replacement behind the trie.
// From node n with unit u the child for byte b is at n ^ offset(u) ^ b when label == b there; the rule that ends at n
// is at n ^ offset(u).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

class Charsmap {
 public:
  struct Rule {
    size_t length = 0;  // bytes that are replaced; 0: no rule
    std::string_view replacement;
  };

  // An empty map has no rules. Throws TokenizerError; `where` names the owner.
  Charsmap(std::string_view bytes, const std::string& where);

  // The rule for the longest or the shortest beginning of text. REQUIRES: text is valid UTF-8.
  Rule Longest(std::string_view text) const { return Search(text, /*longest=*/true); }
  Rule Shortest(std::string_view text) const { return Search(text, /*longest=*/false); }

  // At least 1.
  size_t LongestReplacement() const { return longest_replacement_; }
  bool empty() const { return units_.empty(); }

 private:
  Rule Search(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
  size_t longest_replacement_ = 1;
};

}  // namespace vllm
