// Reads the merges of a BPE model in order of rank, from tokenizer.json, merges.txt or GGUF. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/merge_table.h"
#include "tokenizer/vocabulary.h"

namespace vllm {

class MergeReader {
 public:
  // `prefix` is the continuing_subword_prefix. REQUIRES: all arguments outlive this.
  MergeReader(const Vocabulary& vocabulary, const std::string& prefix, size_t num_merges, const std::string& name)
      : vocabulary_(vocabulary), prefix_(prefix), merges_(num_merges), name_(name) {}

  // Both throw TokenizerError when a token is not in the vocabulary.
  void Add(std::string_view left, std::string_view right);
  // "left right", as in merges.txt.
  void AddLine(std::string_view line);

  MergeTable Take() { return std::move(merges_); }

 private:
  [[noreturn]] void Fail(std::string_view what, const std::string& why) const;
  int32_t IdOf(std::string_view token) const;
  int32_t ResultOf(std::string_view left, std::string_view right);

  const Vocabulary& vocabulary_;
  const std::string& prefix_;
  MergeTable merges_;
  const std::string& name_;
  std::string result_;
  uint32_t rank_ = 0;
  int32_t last_result_ = -1;
};

}  // namespace vllm
