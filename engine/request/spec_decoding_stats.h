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

    void Add(const Method& other, int64_t factor) {
      num_drafts += factor * other.num_drafts;
      num_draft_tokens += factor * other.num_draft_tokens;
      num_accepted_tokens += factor * other.num_accepted_tokens;
      for (size_t i = 0; i < kNumPositions; ++i) {
        drafted[i] += factor * other.drafted[i];
        accepted[i] += factor * other.accepted[i];
      }
    }
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
    for (size_t m = 0; m < methods.size(); ++m) methods[m].Add(other.methods[m], 1);
  }
  // Returns what was added since `earlier`.
  SpecDecodingStats Since(const SpecDecodingStats& earlier) const {
    SpecDecodingStats difference = *this;
    for (size_t m = 0; m < methods.size(); ++m) difference.methods[m].Add(earlier.methods[m], -1);
    return difference;
  }
  // Returns the sum of all methods.
  Method Total() const {
    Method total;
    for (const Method& method : methods) total.Add(method, 1);
    return total;
  }
};

}  // namespace vllm
