#include "tokenizer/models/word_piece.h"

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

WordPiece::WordPiece(WordPieceConfig config, Vocabulary vocabulary)
    : TokenModel(std::move(vocabulary)), config_(std::move(config)), unk_id_(vocabulary_.Find(config_.unk_token)) {
  std::vector<TokenTrie::Entry> entries;
  entries.reserve(vocabulary_.size());
  for (int32_t id = 0; id < vocabulary_.IdLimit(); ++id) {
    if (const auto token = vocabulary_.TokenOf(id)) entries.push_back({*token, id});
  }
  trie_ = TokenTrie(std::move(entries));
  continuing_root_ = trie_.Find(config_.continuing_subword_prefix);
}

void WordPiece::Encode(std::string_view word, ModelScratch&, std::vector<int32_t>& out) const {
  const size_t first = out.size();
  bool fails =
      word.size() > config_.max_input_chars_per_word && CountCodePoints(word) > config_.max_input_chars_per_word;
  for (size_t start = 0; start < word.size() && !fails;) {
    uint32_t node = start == 0 ? TokenTrie::kRoot : continuing_root_;
    size_t longest = start;
    int32_t id = -1;
    for (size_t end = start; end < word.size() && node != TokenTrie::kNoNode;) {
      node = trie_.Next(node, static_cast<unsigned char>(word[end]));
      ++end;
      if (node == TokenTrie::kNoNode || trie_.ValueOf(node) < 0) continue;
      longest = end;
      id = trie_.ValueOf(node);
    }
    if (id < 0) fails = true;
    out.push_back(id);
    start = longest;
  }
  if (!fails) return;
  out.resize(first);
  if (unk_id_ >= 0) out.push_back(unk_id_);
}

}  // namespace vllm::tokenizer
