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

// Rows of one expert that are multiplied together: elements [begin, end) of MoeWorkspace::routed.
struct ExpertRows {
  size_t expert = 0;
  size_t begin = 0, end = 0;
};

struct MoeWorkspace {
  std::vector<RoutedRow> routed;                  // ordered by expert, then by row; then the rows of a shared expert
  std::vector<ExpertRows> expert_rows;            // in the order of `routed`
  std::vector<size_t> begin;                      // [num_experts + 1] index in `routed` of each expert's first row
  std::vector<std::pair<int64_t, float>> chosen;  // [num_rows * num_experts_per_tok] expert and weight
  // For one row:
  std::vector<std::pair<float, int64_t>> candidates;  // [num_experts] logit or score, and expert
  std::vector<std::pair<float, int64_t>> groups;      // [n_group] score and group
  std::vector<float> scores;                          // [num_experts]
  std::vector<int32_t> lora_slots;                    // the LoRA adapter of each element of `routed`

  // rows_at_once: the most rows of an element of expert_rows.
  void Reserve(size_t num_rows, size_t num_experts, size_t num_experts_per_tok, size_t rows_at_once) {
    const size_t num_routed = num_rows * (num_experts_per_tok + 1);
    routed.reserve(num_routed);
    expert_rows.reserve(num_experts + 1 + num_routed / rows_at_once);
    lora_slots.reserve(num_routed);
    begin.reserve(num_experts + 1);
    chosen.reserve(num_rows * num_experts_per_tok);
    candidates.reserve(num_experts);
    groups.reserve(num_experts);
    scores.reserve(num_experts);
  }
  size_t size_bytes() const {
    return routed.capacity() * sizeof(routed[0]) + expert_rows.capacity() * sizeof(expert_rows[0]) +
           begin.capacity() * sizeof(begin[0]) + chosen.capacity() * sizeof(chosen[0]) +
           candidates.capacity() * sizeof(candidates[0]) + groups.capacity() * sizeof(groups[0]) +
           scores.capacity() * sizeof(scores[0]) + lora_slots.capacity() * sizeof(lora_slots[0]);
  }
};

}  // namespace vllm
