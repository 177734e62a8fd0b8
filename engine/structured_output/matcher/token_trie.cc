#include "engine/structured_output/matcher/token_trie.h"

#include <algorithm>

#include "engine/structured_output/matcher/plain_text.h"

namespace vllm {

TokenTrie::TokenTrie(std::vector<Token> tokens) {
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) {
    const int order = a.bytes.compare(b.bytes);
    return order != 0 ? order < 0 : a.id < b.id;
  });
  std::vector<size_t> path;           // path[d] is the index of the open node of depth d + 1
  std::vector<PlainTextState> plain;  // the states after the first bytes of the path, as far as it is plain text
  const auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      nodes_[path.back()].subtree_size = static_cast<uint32_t>(nodes_.size() - path.back());
    }
  };
  std::string_view previous;
  for (const Token& token : tokens) {
    const auto common = static_cast<size_t>(
        std::mismatch(token.bytes.begin(), token.bytes.end(), previous.begin(), previous.end()).first -
        token.bytes.begin());
    close(common);
    plain.resize(std::min(plain.size(), common));
    for (size_t depth = common; depth < token.bytes.size(); ++depth) {
      path.push_back(nodes_.size());
      Node& node = nodes_.emplace_back();
      node.first_token = static_cast<uint32_t>(token_ids_.size());
      node.depth = static_cast<uint16_t>(depth + 1);
      node.byte = static_cast<uint8_t>(token.bytes[depth]);
      if (plain.size() < depth) continue;
      PlainTextState state = depth == 0 ? PlainTextState::kBoundary : plain.back();
      if (!NextPlainText(state, node.byte)) continue;
      plain.push_back(state);
      node.is_plain = state == PlainTextState::kBoundary;
    }
    token_ids_.push_back(token.id);
    previous = token.bytes;
  }
  close(0);
  nodes_.emplace_back().first_token = static_cast<uint32_t>(token_ids_.size());
  nodes_.shrink_to_fit();
}

}  // namespace vllm
