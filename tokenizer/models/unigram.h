// Unigram language model: of all ways to write a word as tokens, the one whose scores add up to the most (Kudo 2018).
// Read-only after construction, any thread. O(n * longest token).
// The three readers of such vocabularies differ in small things that decide ties; UnigramConfig names them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"
#include "tokenizer/models/token_trie.h"

namespace vllm {

struct UnigramConfig {
  int32_t unk_id = -1;  // -1: characters outside the vocabulary are dropped
  double unk_score = 0;
  bool byte_fallback = false;  // unknown characters as "<0x41>" tokens, where the vocabulary has them
  // Sums are rounded to float, as SentencePiece does; otherwise they are doubles.
  bool single_precision = false;
  // A run of unknown characters that is a token after all becomes that token, as in Hugging Face `tokenizers`.
  bool look_up_unknown_runs = false;
};

class Unigram : public TokenModel {
 public:
  // How unknown characters score below the worst token.
  static constexpr double kUnkPenalty = 10.0;
  static constexpr double kNotUsed = -1e300;

  // `scores` are by id; an id scored kNotUsed is never chosen by the search. Throws TokenizerError when unk_id has no
  // token or a score is not a number.
  Unigram(UnigramConfig config, Vocabulary vocabulary, std::vector<double> scores);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

  const UnigramConfig& config() const { return config_; }

 private:
  using Paths = std::vector<ModelScratch::BestPath>;  // of the bytes of the word from some `base` on

  // Goes on from byte `start` with every token that starts there; returns where the next character starts.
  template <typename Sum>
  size_t Step(std::string_view word, size_t start, size_t base, Paths& paths) const;
  // The last place that the best ways to `start` and to all that can be reached yet go through.
  static size_t MeetingPlace(const Paths& paths, size_t start);
  void AppendWay(std::string_view word, size_t base, size_t end, Paths& paths, size_t& unknown,
                 std::vector<int32_t>& out) const;
  void AppendUnknown(std::string_view run, std::vector<int32_t>& out) const;

  UnigramConfig config_;
  std::vector<double> scores_;
  TokenTrie trie_;
  std::vector<int32_t> fallback_ids_;  // "<0x00>".."<0xFF>", -1 where absent
};

}  // namespace vllm
