#include "tokenizer/models/token_trie.h"

#include <algorithm>
#include <iterator>

namespace vllm::tokenizer {

TokenTrie::TokenTrie(std::vector<Entry> entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.token < b.token; });
  // Nodes are created level by level, so the children of a node are adjacent.
  struct Pending {
    size_t begin;  // the entries that start with the prefix of the node
    size_t end;
  };
  std::vector<Pending> level{{0, entries.size()}};
  std::vector<Pending> next_level;
  bytes_.push_back(0);
  values_.push_back(-1);
  for (size_t depth = 0; !level.empty(); ++depth) {
    next_level.clear();
    size_t node = values_.size() - level.size();
    for (const Pending& range : level) {
      size_t i = range.begin;
      for (; i < range.end && entries[i].token.size() == depth; ++i) {
        if (depth > 0) values_[node] = entries[i].value;
      }
      first_child_.push_back(static_cast<uint32_t>(values_.size()));
      while (i < range.end) {
        const char byte = entries[i].token[depth];
        const size_t begin = i;
        while (i < range.end && entries[i].token[depth] == byte) ++i;
        bytes_.push_back(static_cast<uint8_t>(byte));
        values_.push_back(-1);
        next_level.push_back({begin, i});
      }
      ++node;
    }
    level.swap(next_level);
  }
  first_child_.push_back(static_cast<uint32_t>(values_.size()));
  std::fill(std::begin(root_), std::end(root_), kNoNode);
  for (uint32_t child = first_child_[0]; child < first_child_[1]; ++child) root_[bytes_[child]] = child;
}

uint32_t TokenTrie::Find(std::string_view prefix) const {
  uint32_t node = kRoot;
  for (size_t i = 0; i < prefix.size() && node != kNoNode; ++i)
    node = Next(node, static_cast<unsigned char>(prefix[i]));
  return node;
}

TokenTrie::Found TokenTrie::LongestPrefix(std::string_view text) const {
  Found found{0, -1};
  uint32_t node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = Next(node, static_cast<unsigned char>(text[i]));
    if (node == kNoNode) break;
    if (values_[node] >= 0) found = {i + 1, values_[node]};
  }
  return found;
}

}  // namespace vllm::tokenizer
