// A prefix tree over the bytes of tokens. It finds all tokens that start at a position of a text. Owned by a model or a
// normalizer. Read-only after construction, any thread. The children of a node are adjacent and sorted by byte.
// Construction sorts the tokens and is then linear in their bytes. Memory: about 9 bytes per distinct prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

class TokenTrie {
 public:
  struct Entry {
    std::string_view token;
    int32_t value;
  };
  static constexpr uint32_t kNoNode = UINT32_MAX;
  static constexpr uint32_t kRoot = 0;

  TokenTrie() : TokenTrie(std::vector<Entry>()) {}
  // If tokens are equal, the last one wins. Empty tokens are ignored. REQUIRES: values are >= 0.
  explicit TokenTrie(std::vector<Entry> entries);

  // Returns the child of `node` for `byte`, or kNoNode.
  uint32_t Next(uint32_t node, unsigned char byte) const {
    if (node == kRoot) return root_[byte];
    uint32_t low = first_child_[node];
    uint32_t high = first_child_[node + 1];
    while (high - low > 8) {
      const uint32_t middle = low + (high - low) / 2;
      (bytes_[middle] <= byte ? low : high) = middle;
    }
    for (; low < high; ++low) {
      if (bytes_[low] == byte) return low;
    }
    return kNoNode;
  }
  // Returns the value of the token that ends at `node`, or -1.
  int32_t ValueOf(uint32_t node) const { return values_[node]; }
  // Returns the node of `prefix`, or kNoNode.
  uint32_t Find(std::string_view prefix) const;
  struct Found {
    size_t length;
    int32_t value;
  };
  // Returns the length and value of the longest token that is a prefix of `text`, or {0, -1}.
  Found LongestPrefix(std::string_view text) const;

 private:
  uint32_t root_[256];
  std::vector<uint32_t> first_child_;  // per node, plus one entry for the end
  std::vector<uint8_t> bytes_;         // per node: the last byte of its prefix
  std::vector<int32_t> values_;
};

}  // namespace vllm::tokenizer
