// RowSelection: which rows of an input a batch runs: --shard, --sample and --limit, in this order. The choice depends
// only on the index of a row, so every start of a job chooses the same rows. Owned by RowSource; main thread.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace vllm::app {

struct Shard {
  int64_t index = 0;
  int64_t count = 1;
};

// Parses "i/n". Throws ConfigError unless 0 <= i < n.
Shard ParseShard(std::string_view text);

class RowSelection {
 public:
  // Selects all rows.
  RowSelection() = default;

  // Selects the rows whose index is `shard.index` modulo `shard.count`.
  void SetShard(const Shard& shard) { shard_ = shard; }
  // Selects `count` of the rows 0 to `num_rows` - 1 at random: those with the smallest hash of seed and index. Several
  // shards of one input share the sample.
  void SetSample(int64_t count, int64_t num_rows, uint64_t seed);
  // Selects only the first `count` rows that the others select.
  void SetLimit(int64_t count) { limit_ = count; }

  // Returns true if the row is selected. REQUIRES: the calls have ascending indices.
  bool Selects(int64_t index);
  // Returns true if no later row is selected.
  bool IsComplete() const { return num_selected_ >= limit_; }
  bool selects_all() const {
    return shard_.count == 1 && !sample_bound_ && limit_ == std::numeric_limits<int64_t>::max();
  }

 private:
  Shard shard_;
  std::optional<uint64_t> sample_bound_;  // the largest hash that is selected
  uint64_t seed_ = 0;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  int64_t num_selected_ = 0;
};

}  // namespace vllm::app
