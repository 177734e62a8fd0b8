#include "engine/structured_output/matcher/vocab_trie.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace vllm {

VocabTrie::VocabTrie(std::vector<std::string> token_bytes, int64_t vocab_size)
    : token_bytes_(std::move(token_bytes)), vocab_size_(vocab_size) {
  if (token_bytes_.size() > static_cast<size_t>(vocab_size)) token_bytes_.resize(static_cast<size_t>(vocab_size));
  for (std::string& bytes : token_bytes_) {
    if (bytes.size() > kMaxTokenBytes) bytes.clear();
    max_depth_ = std::max(max_depth_, bytes.size());
  }
  tokens_.resize(token_bytes_.size());
  std::iota(tokens_.begin(), tokens_.end(), 0);
  const auto bytes_of = [this](int32_t id) -> const std::string& { return token_bytes_[static_cast<size_t>(id)]; };
  std::erase_if(tokens_, [&](int32_t id) { return bytes_of(id).empty(); });
  std::sort(tokens_.begin(), tokens_.end(), [&](int32_t a, int32_t b) {
    const int order = bytes_of(a).compare(bytes_of(b));
    return order != 0 ? order < 0 : a < b;
  });

  std::vector<size_t> path;  // path[d] is the index of the open node of depth d + 1
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].subtree_size = static_cast<uint32_t>(nodes_.size() - path.back());
    }
  };
  std::string_view previous;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& bytes = bytes_of(tokens_[i]);
    const auto common = static_cast<size_t>(
        std::mismatch(bytes.begin(), bytes.end(), previous.begin(), previous.end()).first - bytes.begin());
    close(common);
    for (size_t depth = common; depth < bytes.size(); ++depth) {
      path.push_back(nodes_.size());
      Node& node = nodes_.emplace_back();
      node.depth = static_cast<uint16_t>(depth + 1);
      node.byte = static_cast<uint8_t>(bytes[depth]);
    }
    Node& node = nodes_[path.back()];
    if (node.num_tokens == 0) node.first_token = static_cast<uint32_t>(i);
    if (node.num_tokens < std::numeric_limits<uint16_t>::max()) ++node.num_tokens;
    previous = bytes;
  }
  close(0);
}

std::string_view VocabTrie::BytesOf(int32_t token_id) const {
  if (token_id < 0 || static_cast<size_t>(token_id) >= token_bytes_.size()) return {};
  return token_bytes_[static_cast<size_t>(token_id)];
}

}  // namespace vllm
