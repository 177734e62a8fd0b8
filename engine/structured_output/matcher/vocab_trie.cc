#include "engine/structured_output/matcher/vocab_trie.h"

#include <algorithm>
#include <utility>

namespace vllm {
namespace {

std::vector<std::string> Usable(std::vector<std::string> token_bytes, int64_t vocab_size) {
  if (token_bytes.size() > static_cast<size_t>(vocab_size)) token_bytes.resize(static_cast<size_t>(vocab_size));
  for (std::string& bytes : token_bytes) {
    if (bytes.size() > VocabTrie::kMaxTokenBytes) bytes.clear();
  }
  return token_bytes;
}

}  // namespace

VocabTrie::VocabTrie(std::vector<std::string> token_bytes, int64_t vocab_size)
    : token_bytes_(Usable(std::move(token_bytes), vocab_size)),
      vocab_size_(vocab_size),
      slices_(token_bytes_, vocab_size) {
  for (const std::string& bytes : token_bytes_) max_depth_ = std::max(max_depth_, bytes.size());
}

std::string_view VocabTrie::BytesOf(int32_t token_id) const {
  if (token_id < 0 || static_cast<size_t>(token_id) >= token_bytes_.size()) return {};
  return token_bytes_[static_cast<size_t>(token_id)];
}

}  // namespace vllm
