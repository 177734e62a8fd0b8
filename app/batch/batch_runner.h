// BatchRunner: rows in, records out: keeps a bounded window of rows in the engine and never waits for one thing while
// another is ready. Owned by the batch command; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "app/batch/batch_output.h"
#include "app/batch/batch_record.h"
#include "app/batch/record_reader.h"
#include "app/batch/row_parser.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"

namespace vllm {

struct BatchCounts {
  int64_t num_rows = 0;
  int64_t num_failed = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generation_tokens = 0;
};

// Takes the rows of an input one by one: framing, blank lines, the row of column names, names used twice.
class RowSource {
 public:
  enum class Status : uint8_t { kRow, kBadRow, kNeedInput, kEnd };

  // All borrowed. `row_template` as --template.
  RowSource(RecordReader& reader, RowParser& parser, std::optional<std::string> row_template);

  // kRow: `row` is set. kBadRow: `id`, `code` and `message` say which and why. Throws ConfigError for bad columns.
  Status Next();

  BatchRow row;
  RowId id;
  std::string code;
  std::string message;
  RecordReader& reader() { return reader_; }

 private:
  bool IsNewCustomId(const std::string& custom_id);

  RecordReader& reader_;
  RowParser& parser_;
  std::optional<std::string> row_template_;
  int64_t next_index_ = 0;
  bool last_was_openai_ = false;
  // 128-bit hashes: a million names cost 32 MB at most, and two names that are taken for one cannot happen.
  struct PairHash {
    size_t operator()(const std::pair<uint64_t, uint64_t>& pair) const { return pair.first; }
  };
  std::unordered_set<std::pair<uint64_t, uint64_t>, PairHash> custom_ids_;
};

class BatchRunner {
 public:
  // All borrowed. `total_bytes` of the input, 0 when it is not known; `total_rows` likewise.
  BatchRunner(LLMEngine& engine, RowSource& source, BatchOutput& output, bool text_format, int64_t total_bytes,
              std::optional<int64_t> total_rows);

  // Runs to the end. Throws Interrupted when a signal says so, EngineDeadError after the records of all rows in the
  // engine, OutputClosed, ResourceError.
  BatchCounts Run();

 private:
  void RunRows();
  void TakeRows();
  // One engine step; its finished rows get their records.
  void Step(std::chrono::milliseconds timeout);
  // The engine has failed: takes what it still says and records an error for each row it has left.
  void FinishDead(const EngineDeadError& death);
  // Writes a record; on a terminal the progress line gives way first.
  void Put(int64_t row_index, const SafeText& record);
  void Fail(const RowId& id, std::string_view code, std::string_view message);
  void Finish(const RequestOutput& output);
  void ShowProgress();
  // Of the whole input: counted, or an estimate from the bytes read so far; none for a stream.
  std::optional<double> TotalRows() const;

  LLMEngine& engine_;
  RowSource& source_;
  BatchOutput& output_;
  bool text_format_;
  int64_t total_bytes_;
  std::optional<int64_t> total_rows_;
  int64_t window_;
  bool at_end_ = false;
  bool needs_input_ = false;
  bool input_is_file_;
  std::unordered_map<std::string, RecordHead> running_;
  BatchCounts counts_;
  ProgressLine progress_{std::chrono::milliseconds(300)};
  std::chrono::steady_clock::time_point start_;
};

}  // namespace vllm
