// The merges that a vocabulary of ranked tokens stands for, as tiktoken means it: any two neighbours whose bytes
// together are a token merge, the token of lowest rank first. For loaders; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/merge_table.h"
#include "tokenizer/models/vocabulary.h"

namespace vllm {

struct RankedToken {
  std::string_view bytes;
  int32_t id;
  uint32_t rank;
};

// Throws TokenizerError when a token is there twice or too long. O(bytes of the tokens * length of the longest).
MergeTable MergesOfRanks(const std::vector<RankedToken>& tokens, const std::string& name_for_errors);

}  // namespace vllm
