// SpecDecodingStats: how many draft tokens were verified and accepted. A plain value that the scheduler sends with each
// step's outputs; any thread may read its copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/config/speculative_config.h"

namespace vllm {

struct SpecDecodingStats {
  // Positions of drafts that are counted one by one. The last counts those after it too.
  static constexpr size_t kNumPositions = 16;

  struct Method {
    int64_t num_drafts = 0;  // steps of requests with drafts of this method
    int64_t num_draft_tokens = 0;
    int64_t num_accepted_tokens = 0;
    std::array<int64_t, kNumPositions> drafted{};   // [position]
    std::array<int64_t, kNumPositions> accepted{};  // [position]

    // The mean number of tokens that such a step gave a request, with the one that is not a draft; vLLM's definition.
    // 0 without drafts.
    double MeanAcceptanceLength() const {
      return num_drafts > 0 ? 1.0 + static_cast<double>(num_accepted_tokens) / static_cast<double>(num_drafts) : 0.0;
    }
  };

  std::array<Method, kNumSpeculativeMethods> methods;  // [SpeculativeMethod]

  void Add(SpeculativeMethod method, size_t num_drafted, size_t num_accepted) {
    Method& stats = methods[static_cast<size_t>(method)];
    ++stats.num_drafts;
    stats.num_draft_tokens += static_cast<int64_t>(num_drafted);
    stats.num_accepted_tokens += static_cast<int64_t>(num_accepted);
    for (size_t i = 0; i < num_drafted; ++i) {
      const size_t position = i < kNumPositions ? i : kNumPositions - 1;
      ++stats.drafted[position];
      stats.accepted[position] += i < num_accepted ? 1 : 0;
    }
  }
  void Add(const SpecDecodingStats& other) {
    for (size_t m = 0; m < methods.size(); ++m) {
      methods[m].num_drafts += other.methods[m].num_drafts;
      methods[m].num_draft_tokens += other.methods[m].num_draft_tokens;
      methods[m].num_accepted_tokens += other.methods[m].num_accepted_tokens;
      for (size_t i = 0; i < kNumPositions; ++i) {
        methods[m].drafted[i] += other.methods[m].drafted[i];
        methods[m].accepted[i] += other.methods[m].accepted[i];
      }
    }
  }
  int64_t num_draft_tokens() const {
    int64_t sum = 0;
    for (const Method& method : methods) sum += method.num_draft_tokens;
    return sum;
  }
  int64_t num_accepted_tokens() const {
    int64_t sum = 0;
    for (const Method& method : methods) sum += method.num_accepted_tokens;
    return sum;
  }
};

}  // namespace vllm
