#include "tokenizer/models/rank_merges.h"

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

MergeTable MergesOfRanks(const std::vector<RankedToken>& tokens, const std::string& name) {
  // Every place of every token is looked at, and looking costs the length.
  constexpr size_t kMaxTokenBytes = 1024;
  constexpr size_t kMaxTotalBytes = size_t{64} << 20;
  size_t num_bytes = 0;
  for (const RankedToken& token : tokens) {
    num_bytes += token.bytes.size();
    if (token.bytes.size() > kMaxTokenBytes || num_bytes > kMaxTotalBytes) {
      throw TokenizerError("reading " + name + ": tokens are too long (limits " + std::to_string(kMaxTokenBytes) +
                           " bytes for one, " + std::to_string(kMaxTotalBytes) + " for all)");
    }
  }
  Vocabulary ids(tokens.size(), num_bytes);
  for (const RankedToken& token : tokens) {
    if (ids.Find(token.bytes) >= 0) {
      throw TokenizerError("reading " + name + ": the token " + QuoteForError(token.bytes) + " is there twice");
    }
    ids.Add(token.bytes, token.id);
  }
  struct Merge {
    int32_t left;
    int32_t right;
    uint32_t rank;
    int32_t result;
  };
  std::vector<Merge> merges;
  merges.reserve(tokens.size() * 3);
  for (const RankedToken& token : tokens) {
    for (size_t cut = 1; cut < token.bytes.size(); ++cut) {
      const int32_t left = ids.Find(token.bytes.substr(0, cut));
      if (left < 0) continue;
      const int32_t right = ids.Find(token.bytes.substr(cut));
      if (right >= 0) merges.push_back({left, right, token.rank, token.id});
    }
  }
  MergeTable table(merges.size());
  for (const Merge& merge : merges) table.Add(merge.left, merge.right, merge.rank, merge.result);
  return table;
}

}  // namespace vllm
