// RowSource: reads the rows of an input one by one. Skips blank lines, rows that are not selected and rows that a
// resumed job has finished, reads the header row of a table, and rejects a custom_id that an earlier valid row has
// used. Owned by the batch command; main thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/id_set.h"
#include "app/batch/input/record_source.h"
#include "app/batch/input/row_parser.h"
#include "app/batch/input/row_selection.h"
#include "app/batch/job/finished_rows.h"

namespace vllm::app {

class RowSource {
 public:
  enum class Status : uint8_t { kRow, kBadRow, kNeedInput, kEnd };

  // Borrows `records` and `parser`.
  RowSource(RecordSource& records, RowParser& parser) : records_(records), parser_(parser) {}

  void SetSelection(const RowSelection& selection) { selection_ = selection; }
  // Skips these rows. Borrows `finished`.
  void SkipFinished(const FinishedRows& finished);
  // Gives each row only its id, for finding out what has changed in the input.
  void SetOnlyIds() { only_ids_ = true; }

  // kRow: `row` and `id` are set. kBadRow: `id`, `code` and `message` describe the error. kNeedInput: call
  // records().Fill() first. Throws ConfigError if the header row is invalid, or if a finished row has changed.
  Status Next();
  // Returns the text of the row, without its line break. Valid until the next call of Next or Fill.
  std::string_view record() const { return record_; }
  // Returns the number of rows that were skipped because they are finished.
  int64_t num_skipped() const { return num_skipped_; }
  // Returns true if the last valid row was one of the OpenAI batch API. A row that is no valid JSON is taken for the
  // same kind.
  bool last_was_openai() const { return last_was_openai_; }

  BatchRow row;
  RowId id;
  std::string code;
  std::string message;
  RecordSource& records() { return records_; }
  RowParser& parser() { return parser_; }

 private:
  // Parses record_ into `row` and `id`. Returns false if the row is finished. Throws RowError and ConfigError.
  bool ParseRow(RecordSource::Status status);

  RecordSource& records_;
  RowParser& parser_;
  RowSelection selection_;
  const FinishedRows* finished_ = nullptr;
  bool only_ids_ = false;
  std::string_view record_;
  uint64_t header_digest_ = 0;
  int64_t next_index_ = 0;
  int64_t num_skipped_ = 0;
  bool last_was_openai_ = false;
  IdSet custom_ids_;
};

}  // namespace vllm::app
