#include "engine/structured_output/matcher/token_trie.h"

#include <algorithm>

namespace vllm {

TokenTrie::TokenTrie(std::vector<Token> tokens) {
  std::sort(tokens.begin(), tokens.end(), [](const Token& a, const Token& b) {
    const int order = a.bytes.compare(b.bytes);
    return order != 0 ? order < 0 : a.id < b.id;
  });
  std::vector<size_t> path;  // path[d] is the index of the open node of depth d + 1
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
    for (size_t depth = common; depth < token.bytes.size(); ++depth) {
      PlainTextState plain = path.empty() ? PlainTextState::kBoundary : nodes_[path.back()].plain;
      const auto byte = static_cast<uint8_t>(token.bytes[depth]);
      if (!NextPlainText(plain, byte)) plain = PlainTextState::kNotPlain;
      path.push_back(nodes_.size());
      nodes_.push_back({.first_token = static_cast<uint32_t>(token_ids_.size()),
                        .depth = static_cast<uint16_t>(depth + 1),
                        .byte = byte,
                        .plain = plain});
    }
    token_ids_.push_back(token.id);
    previous = token.bytes;
  }
  close(0);
  FindKinds();
  nodes_.emplace_back().first_token = static_cast<uint32_t>(token_ids_.size());
  nodes_.shrink_to_fit();
}

void TokenTrie::FindKinds() {
  std::vector<size_t> parents(nodes_.size());
  std::vector<size_t> path;  // path[d] is the last node of depth d + 1
  for (size_t i = 0; i < nodes_.size(); ++i) {
    path.resize(nodes_[i].depth);
    path.back() = i;
    parents[i] = path.size() < 2 ? i : path[path.size() - 2];
  }
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (parents[i] == i) continue;
    Node& parent = nodes_[parents[i]];
    parent.kinds_below |= nodes_[i].kinds_below;
    if (parent.plain == PlainTextState::kBoundary) {
      parent.kinds_below |= CharacterKinds{1} << CharacterKindOf(nodes_[i].byte);
    } else if (nodes_[i].plain == PlainTextState::kNotPlain) {
      parent.kinds_below |= CharacterKinds{1} << kNotPlainKind;
    }
  }
}

}  // namespace vllm
