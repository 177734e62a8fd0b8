// FinishedRows: the rows of a job that are in its output, for skipping them when the job is resumed. Owned by BatchJob;
// main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "app/batch/job/job_file.h"
#include "engine/config/hash.h"

namespace vllm::app {

// Returns the digest by which a row of the input is recognized. `header_digest` is the digest of the header row of a
// table, else 0.
uint64_t RowDigest(std::string_view record, uint64_t header_digest);

class FinishedRows {
 public:
  enum class Match : uint8_t {
    kFinished,  // the row is in the output
    kChanged,   // another row with this id is in the output
    kNew,
  };

  // Adds a row. Call Sort before the first look-up.
  void Add(const JobEntry& entry);
  void Sort();

  bool empty() const { return rows_.empty(); }
  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  int64_t num_failed() const { return num_failed_; }
  // Returns true if the row at this index is in the output, and sets `was_openai` to the value that its entry has.
  // O(log size), O(1) if the rows are asked for in order.
  bool HasRow(int64_t index, uint64_t digest, bool& was_openai) const;
  // Looks for a row that HasRow has not found. A row with an id is compared with the finished row of the same id, even
  // if that had another index. If HasRow or Find has already found that row, the new one is a duplicate, which is kNew.
  // A row without an id (nullopt) is compared with the row at its index. O(log size).
  Match Find(int64_t index, uint64_t digest, std::optional<Hash128> id) const;
  // Calls `visit` with the id of each row that has one.
  template <typename Visit>
  void ForEachId(Visit visit) const {
    for (const Row& row : rows_) {
      if (row.id != Hash128()) visit(row.id);
    }
  }

 private:
  struct Row {
    uint64_t index : 62;
    uint64_t was_openai : 1;
    mutable uint64_t is_found : 1;
    uint64_t digest;
    Hash128 id;
  };
  // Returns the first row with at least this index.
  size_t LowerBound(int64_t index) const;

  std::vector<Row> rows_;                // by index
  mutable size_t cursor_ = 0;            // where HasRow found the last row
  mutable std::vector<uint32_t> by_id_;  // indices in rows_, by id; made by the first call of Find with an id
  int64_t num_failed_ = 0;
};

}  // namespace vllm::app
