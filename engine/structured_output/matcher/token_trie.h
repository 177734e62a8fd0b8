// TokenTrie: tokens as a trie of bytes, to find all tokens that a grammar allows next. A byte that the grammar does not
// allow excludes a whole subtree. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/structured_output/matcher/character_kinds.h"
#include "engine/structured_output/matcher/plain_text.h"

namespace vllm {

class TokenTrie {
 public:
  // One node, which stands for the bytes on its path. The nodes are in depth-first order, so the descendants of node i
  // are the nodes i + 1 .. i + subtree_size - 1.
  struct Node {
    uint32_t subtree_size = 1;
    uint32_t first_token = 0;                          // see TokensOf
    uint16_t depth = 0;                                // number of bytes on the path, at least 1
    uint8_t byte = 0;                                  // the last byte of the path
    PlainTextState plain = PlainTextState::kNotPlain;  // after the path
    CharacterKinds kinds_below = 0;                    // of the characters that begin in the descendants
  };
  struct Token {
    std::string_view bytes;  // not empty; only read by the constructor
    int32_t id = 0;
  };

  TokenTrie() = default;
  explicit TokenTrie(std::vector<Token> tokens);

  std::span<const Node> nodes() const { return std::span(nodes_).first(nodes_.empty() ? 0 : nodes_.size() - 1); }
  // Returns the tokens whose bytes are the path of the node. Different tokens may have equal bytes.
  std::span<const int32_t> TokensOf(size_t node) const { return Tokens(node, node + 1); }
  // Returns the tokens whose bytes begin with the path of the node.
  std::span<const int32_t> TokensBelow(size_t node) const { return Tokens(node, node + nodes_[node].subtree_size); }
  std::span<const int32_t> tokens() const { return token_ids_; }

 private:
  std::span<const int32_t> Tokens(size_t begin, size_t end) const {
    return std::span(token_ids_)
        .subspan(nodes_[begin].first_token, nodes_[end].first_token - nodes_[begin].first_token);
  }

  void FindKinds();

  std::vector<Node> nodes_;  // the last one only ends the tokens of the one before
  std::vector<int32_t> token_ids_;
};

}  // namespace vllm
