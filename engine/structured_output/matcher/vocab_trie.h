// VocabTrie: the tokens of a vocabulary as a trie of bytes, to find all tokens that a grammar allows next. A byte that
// the grammar does not allow excludes a whole subtree. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

class VocabTrie {
 public:
  // One node, which stands for the bytes on its path. The nodes are in depth-first order, so the descendants of node i
  // are the nodes i + 1 .. i + subtree_size - 1.
  struct Node {
    uint32_t subtree_size = 1;
    uint32_t first_token = 0;  // the node's tokens are tokens()[first_token .. first_token + num_tokens)
    uint16_t num_tokens = 0;   // different ids may have equal bytes
    uint16_t depth = 0;        // number of bytes on the path, at least 1
    uint8_t byte = 0;          // the last byte of the path
  };

  // `token_bytes`: see tokenizer::TokenBytes. Leaves out tokens without bytes, those of more than kMaxTokenBytes bytes,
  // and ids outside [0, vocab_size).
  VocabTrie(std::vector<std::string> token_bytes, int64_t vocab_size);

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const int32_t> TokensOf(const Node& node) const {
    return std::span(tokens_).subspan(node.first_token, node.num_tokens);
  }
  // Returns the bytes of `token_id`, or an empty text if the trie does not contain it.
  std::string_view BytesOf(int32_t token_id) const;
  // The number of logits in a row. May be larger than the number of tokens.
  int64_t vocab_size() const { return vocab_size_; }
  size_t max_depth() const { return max_depth_; }

  static constexpr size_t kMaxTokenBytes = 1024;

 private:
  std::vector<std::string> token_bytes_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  int64_t vocab_size_;
  size_t max_depth_ = 0;
};

}  // namespace vllm
