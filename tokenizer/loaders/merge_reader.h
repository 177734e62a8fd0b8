// Collects the merges of a BPE model, from tokenizer.json, merges.txt or GGUF. For the loaders; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/merge_table.h"
#include "tokenizer/models/vocabulary.h"

namespace vllm::tokenizer {

class MergeReader {
 public:
  // `prefix` is the continuing_subword_prefix. `name` names the source of the merges in error messages. Reserves
  // memory for `num_merges` merges. REQUIRES: `vocabulary`, `prefix` and `name` outlive this.
  MergeReader(const Vocabulary& vocabulary, const std::string& prefix, size_t num_merges, const std::string& name)
      : vocabulary_(vocabulary), prefix_(prefix), name_(name) {
    merges_.reserve(num_merges);
  }

  // Adds the merge of the next rank. Its tokens are looked up kDistance merges later, or in Take. Throws TokenizerError
  // if a token or the result of an earlier merge is not in the vocabulary, or if the right token of an earlier merge is
  // shorter than the prefix.
  void Add(std::string_view left, std::string_view right);
  // Adds a merge written as "left right", as in merges.txt. Throws TokenizerError like Add, and if the line is not two
  // tokens.
  void AddLine(std::string_view line);

  // Looks up the remaining merges and returns all of them. Throws TokenizerError like Add. Must be the last call.
  MergeTable Take();

 private:
  // A merge whose tokens are looked up later, after the prefetch of their hash table entries.
  struct Pending {
    std::string text;  // left, then right
    size_t left_bytes = 0;
    uint64_t left_hash = 0;
    uint64_t right_hash = 0;
  };
  struct Merge {
    int32_t left;
    int32_t right;
    int32_t result;
  };
  static constexpr size_t kDistance = 16;

  void LookUp(const Pending& pending);
  [[noreturn]] void Fail(size_t rank, std::string_view text, const std::string& why) const;
  int32_t IdOf(std::string_view token, uint64_t hash) const;
  int32_t ResultOf(std::string_view left, std::string_view right);

  const Vocabulary& vocabulary_;
  const std::string& prefix_;
  const std::string& name_;
  Pending pending_[kDistance];  // a ring; merge i is at i % kDistance
  size_t num_added_ = 0;
  std::vector<Merge> merges_;  // by rank
  std::string result_;
  int32_t last_result_ = -1;
};

}  // namespace vllm::tokenizer
