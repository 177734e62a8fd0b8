// AttentionPlan: decides which KV partitions of a step's decoding rows are computed in separate tasks. Each row's own
// task then merges their results. If a prefix-cache hit put the same blocks into the tables of several rows, the
// partitions of these blocks can be read once for all of the rows (cascade attention). If one sequence would keep a
// thread busy while other threads are idle, its partitions are spread over the threads. The output of attention has the
// same bits for every plan. Part of an AttentionGroup; made for each step on the rank's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"

namespace vllm {

// Rows [first_row, first_row + num_rows) of the step are consecutive tokens of one request.
struct AttentionSequence {
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
  const int32_t* block_table = nullptr;
};

struct AttentionPlanOptions {
  int64_t block_size = 16;
  int64_t sliding_window = 0;  // window of the KV-cache group; 0: full attention
  int64_t num_kv_heads = 1;
  int64_t num_threads = 1;
  int64_t max_sequences = 0;   // per step
  int64_t max_slots = 0;       // capacity for partition results, per step
  int64_t max_partitions = 0;  // summed over the sequences of a step; memory is reserved for them
  // Sharing a partition costs memory for its results and a pass that merges them. It pays if a row has too few queries
  // per KV head to keep the arithmetic units busy, or if a head's K and V do not stay in the CPU cache from one row's
  // task to the next.
  int64_t num_queries_per_kv = 1;
  int64_t head_bytes_per_token = 0;  // K and V of one KV head
  bool share = true;                 // false: partitions are only spread over threads
};

// One partition of num_rows rows. The result of row i goes to slot first_slot + i.
struct PlannedPartition {
  int64_t partition = 0;
  int64_t first_slot = 0;
  int64_t num_rows = 0;
  const int32_t* block_table = nullptr;  // of one of the rows; all their tables agree in this partition
};

class AttentionPlan {
 public:
  AttentionPlan() = default;
  explicit AttentionPlan(const AttentionPlanOptions& options);

  // Replaces the plan. Borrows the block tables. Allocates only if `sequences` exceed the limits of the options.
  void Make(const std::vector<AttentionSequence>& sequences);

  size_t max_slots() const { return static_cast<size_t>(options_.max_slots); }
  size_t size_bytes() const;
  const std::vector<PlannedPartition>& partitions() const { return partitions_; }
  const kernels::AttentionRow* row_of_slot(int64_t slot) const { return rows_.data() + slot; }
  // Returns the slot of each partition up to the row's position, [position / kKVPartition + 1], with -1 for a partition
  // that is not planned. Returns null if no partition of the sequence is planned. `sequence` is an index in Make's
  // argument.
  const int32_t* slots(size_t sequence) const;

 private:
  // A sequence that has one row in this step and more than one partition.
  struct Decoding {
    kernels::AttentionRow row;
    const int32_t* block_table;
    size_t sequence;
    int64_t first_partition, end_partition;
    int64_t slots;  // index in slots_ of the sequence's partition 0
  };

  void CollectDecoding(const std::vector<AttentionSequence>& sequences);
  void ShareEqual(int64_t partition);
  void Split(const std::vector<AttentionSequence>& sequences);
  bool IsSharingWorthwhile(int64_t num_partitions) const;
  bool SameBlocks(const Decoding& a, const Decoding& b, int64_t partition) const;
  void Add(int64_t partition, const Decoding* const* members, size_t count);

  AttentionPlanOptions options_;
  std::vector<PlannedPartition> partitions_;
  std::vector<kernels::AttentionRow> rows_;  // [num_slots]
  std::vector<int32_t> slots_;
  std::vector<int64_t> slots_begin_;  // [num_sequences] index in slots_; below 0: no partition is planned
  std::vector<Decoding> decoding_;
  std::vector<const Decoding*> candidates_;
};

}  // namespace vllm
