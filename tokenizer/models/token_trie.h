// A prefix tree over the bytes of tokens, for finding all tokens that start at a place of a text.
// Read-only after construction, any thread. The children of a node are neighbours, sorted by byte; building is linear
// in the bytes of the tokens once they are sorted, and memory is 13 bytes for each different prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace vllm {

class TokenTrie {
 public:
  struct Entry {
    std::string_view token;
    int32_t value;
  };
  static constexpr uint32_t kNoNode = UINT32_MAX;
  static constexpr uint32_t kRoot = 0;

  TokenTrie() : TokenTrie(std::vector<Entry>()) {}
  // Values are not negative. Of equal tokens the last one counts; empty tokens are left out.
  explicit TokenTrie(std::vector<Entry> entries);

  // The node that `byte` leads to from `node`, or kNoNode.
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
  // The value of the token that ends at `node`, or -1.
  int32_t ValueOf(uint32_t node) const { return values_[node]; }
  // The node that `prefix` leads to from the root, or kNoNode.
  uint32_t Find(std::string_view prefix) const;
  // Length and value of the longest token that `text` starts with; {0, -1} when there is none.
  struct Found {
    size_t length;
    int32_t value;
  };
  Found LongestPrefix(std::string_view text) const;

 private:
  uint32_t root_[256];
  std::vector<uint32_t> first_child_;  // one more than there are nodes
  std::vector<uint8_t> bytes_;         // the byte that leads to a node
  std::vector<int32_t> values_;
};

}  // namespace vllm
