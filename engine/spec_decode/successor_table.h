// SuccessorTable: the token that usually followed each token of a text. It gives a draft where the last two tokens have
// not occurred together before. Owned by the SuffixProposer; engine thread only.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace vllm {

class SuccessorTable {
 public:
  struct Successor {
    int32_t token_id = -1;  // -1: none
    int32_t num_hits = 0;   // how often it was right since it was learned, minus how often it was wrong
  };

  // Learns that `next` followed `token_id`. A successor with hits survives as many exceptions.
  void Add(int32_t token_id, int32_t next) {
    Successor& successor = successors_[token_id];
    if (successor.token_id == next) {
      successor.num_hits = successor.num_hits < kMaxHits ? successor.num_hits + 1 : kMaxHits;
    } else if (successor.num_hits > 0) {
      --successor.num_hits;
    } else {
      successor = {next, 0};
    }
  }

  Successor Find(int32_t token_id) const {
    const auto it = successors_.find(token_id);
    return it == successors_.end() ? Successor() : it->second;
  }

 private:
  static constexpr int32_t kMaxHits = 7;

  std::unordered_map<int32_t, Successor> successors_;  // at most one entry per token of the vocabulary
};

}  // namespace vllm
