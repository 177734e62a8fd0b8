// The part of a tokenizer that turns one word (pre-token) into ids. Read-only after construction, any thread; what one
// call needs to work in is lent by the caller as a ModelScratch, which keeps its memory from word to word.
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

namespace vllm {

struct ModelScratch {
  // Of a Viterbi search: the best way to the byte position this node stands for.
  struct BestPath {
    double score;
    int32_t id;
    uint32_t length;  // bytes of the last token of the way; 0 when there is none
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

  // Called every few kilobytes of text. Throws EncodingStopped when `stop` is set.
  void ThrowIfStopped() const {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw EncodingStopped();
  }
};

class TokenModel {
 public:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~TokenModel() = default;

  // Appends the ids of `word`. REQUIRES: word is valid UTF-8, unless the model was made for the bytes of words.
  virtual void Encode(std::string_view word, ModelScratch& scratch, std::vector<int32_t>& out) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  Vocabulary vocabulary_;
};

}  // namespace vllm
