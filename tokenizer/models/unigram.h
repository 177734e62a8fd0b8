// Unigram language model (Kudo 2018): splits a word into the tokens whose scores have the largest sum.
// Owned by the Tokenizer. Read-only after construction, any thread. O(n * longest token).
// SentencePiece, Hugging Face `tokenizers` and llama.cpp differ in details, some of which decide ties. UnigramConfig
// selects whose behavior the model follows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"
#include "tokenizer/models/token_trie.h"

namespace vllm::tokenizer {

struct UnigramConfig {
  int32_t unk_id = -1;  // -1: drops characters that have no token and no byte fallback
  double unk_score = 0;
  bool byte_fallback = false;  // writes unknown characters as "<0x41>" tokens if the vocabulary has them
  // Rounds sums of scores to float, as SentencePiece does. Otherwise the sums are doubles.
  bool single_precision = false;
  // Looks up each run of unknown characters as a token first, as Hugging Face `tokenizers` does.
  bool look_up_unknown_runs = false;
};

class Unigram : public TokenModel {
 public:
  // The score of an unknown character is this much below the lowest score of a normal token.
  static constexpr double kUnkPenalty = 10.0;
  // The score of a user-defined token, which should nearly always win. It is that of SentencePiece 0.2.3.
  static double UserDefinedScore(std::string_view token) { return 0.1 * static_cast<double>(token.size()) - 0.1; }
  // The search never matches a token with this score.
  static constexpr double kNotUsed = -1e300;

  // `scores` is indexed by id. Throws TokenizerError if unk_id is out of range or a score is NaN or infinite.
  Unigram(UnigramConfig config, Vocabulary vocabulary, std::vector<double> scores);

  void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const override;

  const UnigramConfig& config() const { return config_; }

 private:
  using Paths = std::vector<ModelScratch::BestPath>;  // one per byte position of the word, from byte `base` on

  // Extends the best path to byte `start` with every token that starts there, and with the unknown token if none of
  // them is a single character. Returns the start of the next character.
  template <typename Sum>
  size_t Step(std::string_view word, size_t start, size_t base, Paths& paths) const;
  // Returns the last position that the best paths to `start` and to every later reached position have in common.
  static size_t LastCommonPosition(const Paths& paths, size_t start);
  // Appends the tokens of the best path to paths[end], where paths[0] is byte `base` of the word. `unknown` is the
  // length in bytes of the pending run of unknown characters. Overwrites `paths`.
  void AppendBestPath(std::string_view word, size_t base, size_t end, Paths& paths, size_t& unknown,
                      std::vector<int32_t>& out) const;
  // Appends the tokens of a run of unknown characters.
  void AppendUnknown(std::string_view run, std::vector<int32_t>& out) const;

  UnigramConfig config_;
  std::vector<double> scores_;
  TokenTrie trie_;
  std::vector<int32_t> fallback_ids_;  // "<0x00>".."<0xFF>", -1 where absent
};

}  // namespace vllm::tokenizer
