// The part of a tokenizer that turns one word (pre-token) into ids. Owned by the Tokenizer. Read-only after
// construction, any thread. Each call of Tokenizer::Encode has a ModelScratch and reuses it from word to word.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/models/merge_table.h"
#include "tokenizer/models/vocabulary.h"

namespace vllm::tokenizer {

struct ModelScratch {
  // A node of a Viterbi search: the best path to one byte position.
  struct BestPath {
    double score;
    int32_t id;
    uint32_t length;  // bytes of the path's last token; 0 if there is none
  };
  std::vector<int32_t> ids;
  std::vector<uint32_t> previous;
  std::vector<uint32_t> next;
  std::vector<uint32_t> lengths;
  std::vector<MergeTable::Merge> merges;
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> block_ranks;
  std::vector<uint64_t> heap;
  std::vector<BestPath> best_paths;
  std::string text;
  const std::atomic<bool>* stop = nullptr;  // may be null

  // Called between batches of words and between the windows of a long word. Throws EncodingStopped if *stop is true.
  void ThrowIfStopped() const {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw EncodingStopped();
  }
};

class TokenModel {
 public:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~TokenModel() = default;

  // Appends the ids of `word`. REQUIRES: word is valid UTF-8, unless the model encodes raw bytes.
  virtual void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

}  // namespace vllm::tokenizer
