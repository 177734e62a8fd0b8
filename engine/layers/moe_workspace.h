// MoeWorkspace: records which rows of a step each expert processes. A rank's mixture-of-experts layers share it, one
// layer at a time. Reserved at load for the largest step. Part of the rank's Workspace; used on the rank's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace vllm {

// A row that an expert processes, and the factor by which the expert's output is multiplied.
struct RoutedRow {
  int64_t row = 0;
  float weight = 0.0f;
};

struct MoeWorkspace {
  std::vector<RoutedRow> routed;                  // ordered by expert, then by row
  std::vector<size_t> begin;                      // [num_experts + 1] index in `routed` of each expert's first row
  std::vector<std::pair<int64_t, float>> chosen;  // [num_rows * num_experts_per_tok] expert and weight
  // For one row:
  std::vector<std::pair<float, int64_t>> candidates;  // [num_experts] logit or score, and expert
  std::vector<std::pair<float, int64_t>> groups;      // [n_group] score and group
  std::vector<float> scores;                          // [num_experts]
  std::vector<int32_t> lora_slots;                    // [rows of an expert] the LoRA adapter of each

  void Reserve(size_t num_rows, size_t num_experts, size_t num_experts_per_tok) {
    // At least one entry per row, because a shared expert processes all rows.
    routed.reserve(num_rows * std::max<size_t>(1, num_experts_per_tok));
    begin.reserve(num_experts + 1);
    chosen.reserve(num_rows * num_experts_per_tok);
    candidates.reserve(num_experts);
    groups.reserve(num_experts);
    scores.reserve(num_experts);
    lora_slots.reserve(num_rows);
  }
  size_t size_bytes() const {
    return routed.capacity() * sizeof(routed[0]) + begin.capacity() * sizeof(begin[0]) +
           chosen.capacity() * sizeof(chosen[0]) + candidates.capacity() * sizeof(candidates[0]) +
           groups.capacity() * sizeof(groups[0]) + scores.capacity() * sizeof(scores[0]) +
           lora_slots.capacity() * sizeof(lora_slots[0]);
  }
};

}  // namespace vllm
