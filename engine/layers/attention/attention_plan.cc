#include "engine/layers/attention/attention_plan.h"

#include <algorithm>
#include <span>

namespace vllm {
namespace {

template <typename T>
size_t CapacityBytes(const std::vector<T>& vector) {
  return std::span(vector.data(), vector.capacity()).size_bytes();
}

}  // namespace

AttentionPlan::AttentionPlan(const AttentionPlanOptions& options) : options_(options) {
  partitions_.reserve(static_cast<size_t>(options.max_slots));
  rows_.reserve(static_cast<size_t>(options.max_slots));
  slots_.reserve(static_cast<size_t>(options.max_partitions));
  slots_begin_.reserve(static_cast<size_t>(options.max_sequences));
  decoding_.reserve(static_cast<size_t>(options.max_sequences));
  candidates_.reserve(static_cast<size_t>(options.max_sequences));
}

size_t AttentionPlan::size_bytes() const {
  return CapacityBytes(partitions_) + CapacityBytes(rows_) + CapacityBytes(slots_) + CapacityBytes(slots_begin_) +
         CapacityBytes(decoding_) + CapacityBytes(candidates_);
}

void AttentionPlan::Make(const std::vector<AttentionSequence>& sequences) {
  partitions_.clear();
  rows_.clear();
  slots_.clear();
  slots_begin_.assign(sequences.size(), -1);
  CollectDecoding(sequences);
  if (options_.share && decoding_.size() > 1) {
    int64_t end = 0;
    for (const Decoding& decoding : decoding_) end = std::max(end, decoding.end_partition);
    if (IsSharingWorthwhile(end)) {
      for (int64_t partition = 0; partition < end; ++partition) ShareEqual(partition);
    }
  }
  if (options_.num_threads > 1) Split(sequences);
}

const int32_t* AttentionPlan::slots(size_t sequence) const {
  const int64_t begin = slots_begin_[sequence];
  return begin < 0 ? nullptr : slots_.data() + begin;
}

void AttentionPlan::CollectDecoding(const std::vector<AttentionSequence>& sequences) {
  decoding_.clear();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const AttentionSequence& sequence = sequences[i];
    if (sequence.num_rows != 1 || sequence.first_position < kernels::kKVPartition) continue;
    const int64_t position = sequence.first_position;
    const int64_t first =
        options_.sliding_window > 0 ? std::max<int64_t>(0, position + 1 - options_.sliding_window) : 0;
    const auto begin = static_cast<int64_t>(slots_.size());
    const int64_t end = position / kernels::kKVPartition + 1;
    slots_.resize(slots_.size() + static_cast<size_t>(end), -1);
    decoding_.push_back(
        {{sequence.first_row, position}, sequence.block_table, i, first / kernels::kKVPartition, end, begin});
  }
}

bool AttentionPlan::IsSharingWorthwhile(int64_t num_partitions) const {
  // With more than two queries per KV head, share only if K and V come from memory instead of the CPU cache. When they
  // came from the CPU cache, sharing did not reliably pay in a measurement with four or more queries per
  // KV head (docs/BENCHMARKS.md).
  constexpr int64_t kFewQueries = 2;
  constexpr int64_t kCacheBytes = int64_t{8} << 20;
  return options_.num_queries_per_kv <= kFewQueries ||
         num_partitions * kernels::kKVPartition * options_.head_bytes_per_token > kCacheBytes;
}

bool AttentionPlan::SameBlocks(const Decoding& a, const Decoding& b, int64_t partition) const {
  const int64_t begin = partition * kernels::kKVPartition / options_.block_size;
  const int64_t end = ((partition + 1) * kernels::kKVPartition - 1) / options_.block_size + 1;
  return std::equal(a.block_table + begin, a.block_table + end, b.block_table + begin);
}

void AttentionPlan::ShareEqual(int64_t partition) {
  candidates_.clear();
  for (const Decoding& decoding : decoding_) {
    const bool sees_its_end = decoding.row.position + 1 >= (partition + 1) * kernels::kKVPartition;
    if (partition >= decoding.first_partition && sees_its_end) candidates_.push_back(&decoding);
  }
  if (candidates_.size() < 2) return;
  const int64_t block = partition * kernels::kKVPartition / options_.block_size;
  std::sort(candidates_.begin(), candidates_.end(), [block](const Decoding* a, const Decoding* b) {
    if (a->block_table[block] != b->block_table[block]) return a->block_table[block] < b->block_table[block];
    return a->sequence < b->sequence;
  });
  for (size_t begin = 0; begin < candidates_.size();) {
    size_t end = begin + 1;
    while (end < candidates_.size() && SameBlocks(*candidates_[begin], *candidates_[end], partition)) ++end;
    if (end - begin > 1) Add(partition, candidates_.data() + begin, end - begin);
    begin = end;
  }
}

void AttentionPlan::Split(const std::vector<AttentionSequence>& sequences) {
  int64_t total = 0;
  for (const AttentionSequence& sequence : sequences) {
    int64_t seen = sequence.first_position + sequence.num_rows;
    if (options_.sliding_window > 0) seen = std::min(seen, options_.sliding_window + sequence.num_rows);
    total += sequence.num_rows * seen;
  }
  for (const Decoding& decoding : decoding_) {
    int64_t seen = decoding.row.position + 1;
    if (options_.sliding_window > 0) seen = std::min(seen, options_.sliding_window);
    // Split a row only if its task for one KV head is more than half of a thread's share of the work.
    if (2 * seen * options_.num_threads <= total * options_.num_kv_heads) continue;
    const Decoding* alone = &decoding;
    for (int64_t partition = decoding.first_partition; partition < decoding.end_partition; ++partition) {
      if (slots_[static_cast<size_t>(decoding.slots + partition)] < 0) Add(partition, &alone, 1);
    }
  }
}

void AttentionPlan::Add(int64_t partition, const Decoding* const* members, size_t count) {
  if (rows_.size() + count > static_cast<size_t>(options_.max_slots)) return;
  partitions_.push_back(
      {partition, static_cast<int64_t>(rows_.size()), static_cast<int64_t>(count), members[0]->block_table});
  for (size_t i = 0; i < count; ++i) {
    const Decoding& member = *members[i];
    slots_[static_cast<size_t>(member.slots + partition)] = static_cast<int32_t>(rows_.size());
    slots_begin_[member.sequence] = member.slots;
    rows_.push_back(member.row);
  }
}

}  // namespace vllm
