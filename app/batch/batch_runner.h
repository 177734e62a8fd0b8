// BatchRunner: sends rows to the engine and writes their records. It keeps a bounded window of rows in the engine. It
// polls the engine, signals and the input (unless the input is a regular file) together, so that waiting for one does
// not delay the others. Owned by the batch command; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/batch/batch_live.h"
#include "app/batch/batch_output.h"
#include "app/batch/batch_progress.h"
#include "app/batch/batch_record.h"
#include "app/batch/input/row_source.h"
#include "app/batch/input_scan.h"
#include "app/batch/pooling/pooling_rows.h"
#include "app/batch/tools/call_constraints.h"
#include "app/output/run_until_done.h"
#include "engine/config/errors.h"

namespace vllm::app {

struct BatchCounts {
  int64_t num_rows = 0;  // that this run has taken, without those that it has skipped
  int64_t num_failed = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generation_tokens = 0;
};

// How the records of a batch are written.
struct BatchFormats {
  InputFormat input = InputFormat::kJsonLines;
  BatchFormat output = BatchFormat::kJsonLines;
};

class BatchRunner {
 public:
  // After a signal, the rows that run have this time to finish.
  static constexpr std::chrono::milliseconds kMaxDrainTime{3000};
  // The same for a distributed job: Open MPI's mpirun kills its processes one second after SIGTERM.
  static constexpr std::chrono::milliseconds kMaxDistributedDrainTime{500};

  // Borrows the references. Reports the progress to `live` and `progress`. `total_bytes` is the size of the input, or 0
  // if unknown.
  BatchRunner(LLMEngine& engine, RowSource& source, BatchOutput& output, BatchLive& live,
              BatchProgressDisplay& progress, const BatchFormats& formats, int64_t total_bytes);
  // Sets the number of rows to run, or the scan that finds it out if all rows are run. Borrows `scan`.
  void SetTotalRows(int64_t num_rows) { total_rows_ = num_rows; }
  void SetScan(const InputScan* scan, bool runs_all_rows) {
    scan_ = scan;
    knows_all_rows_ = runs_all_rows;
  }
  // Sets how the model marks its thinking in the answers of chats. Null, the default: answers are not split.
  void SetReasoningFormat(std::shared_ptr<const ReasoningFormat> format) { reasoning_format_ = std::move(format); }

  // Sets how the model writes tool calls. Without a format, the default, calls are part of the text.
  void SetToolCalls(CallConstraints tool_calls) { tool_calls_ = std::move(tool_calls); }

  // Sets how texts become vectors and scores. Without it, rows that ask for them are rejected. Borrowed.
  void SetPooling(PoolingPrompts* prompts) { pooling_rows_ = PoolingRows(prompts); }

  // Returns true if the user has stopped the batch in the live view. Rows that were running then have no records.
  bool was_stopped() const { return was_stopped_; }

  // Runs all rows. The first signal lets the rows that run finish, for up to kMaxDrainTime, and starts no others; then,
  // or with a second signal, throws Interrupted. If the engine dies, writes an error record for each row that
  // was submitted and has not finished, and throws EngineDeadError. Throws ConfigError if the header row or the row
  // template is invalid. Throws OutputClosed, ResourceError.
  void Run();

  // Returns the callbacks that run the rows while the main thread does other things. Borrows this. Nothing is printed
  // until Run is called, which runs the rows that are left. A callback that has thrown throws the same again, and so
  // does Run. REQUIRES: the input is a regular file.
  BackgroundWork Background();
  // Returns the progress, such as "120/1,000 rows, in 520.0 tok/s, out 80.2 tok/s, 3 min 20 s left".
  std::string ProgressText() const;
  // Returns true if all rows of the input are in the output.
  bool has_all_rows() const { return input_ended_ && running_.empty() && !has_lost_rows_; }
  // Returns the number of rows that an earlier start of the job has finished.
  int64_t num_skipped() const { return source_.num_skipped(); }
  const BatchCounts& counts() const { return counts_; }
  // Returns true if all rows have finished.
  bool IsDone() const { return at_end_ && running_.empty(); }
  // Returns the time that the batch has taken. It ends with the last row, also if a chat continues after it.
  Seconds elapsed() const;

 private:
  void RunRows();
  void SubmitRows();
  // Writes the records of the rows that have finished.
  void WriteFinished(const std::vector<RequestOutput>& outputs);
  // Called after the engine has died. Processes the remaining outputs and writes an error record for each row that was
  // submitted and has not finished.
  void FinishDead(const EngineDeadError& death);
  // Writes the record of a row. Erases the progress line first if both are on the terminal.
  void Put(const RecordHead& head, JobEntry entry, std::string record);
  void Fail(const RecordHead& head, std::string_view code, std::string_view message);
  // Writes the header of a table before the first record.
  void PutHeads();
  void PrintWarnings();
  // Starts no more rows, and lets those that run finish.
  void BeginDrain(int signal_number);
  void Finish(const RequestOutput& output);
  void FinishPooling(const std::string& row_id);
  // Calls `action`. Keeps what it throws, because a command of the chat may report an exception and continue.
  void KeepFailure(const std::function<void()>& action);
  // Gives the live view and the publisher the progress. Stops the batch if the user has asked for it.
  void UpdateLive();
  void Update();
  BatchProgress Progress() const;
  // Aborts the running rows and takes no more.
  void Stop();
  // Gives up a row that has been taken: it has no record.
  void Drop(const RecordHead& head);
  // Returns the number of rows of the whole input. If it is unknown, estimates it from the bytes read so far. Returns
  // nullopt if that is impossible, because the size of the input is unknown too or nothing has been read.
  std::optional<double> TotalRows() const;

  LLMEngine& engine_;
  RowSource& source_;
  BatchOutput& output_;
  BatchLive& live_;
  BatchProgressDisplay& progress_;
  BatchFormats formats_;
  TableFormat table_;
  bool has_heads_ = false;
  std::shared_ptr<const ReasoningFormat> reasoning_format_;
  CallConstraints tool_calls_;
  int64_t total_bytes_;
  std::optional<int64_t> total_rows_;
  const InputScan* scan_ = nullptr;  // null if there is none or its result has been taken
  bool knows_all_rows_ = false;      // the number of rows that the scan finds is the number of rows to run
  bool was_stopped_ = false;
  bool input_ended_ = false;
  bool has_lost_rows_ = false;  // rows that were running were stopped
  int interrupt_signal_ = 0;    // not 0: the runner drains
  std::chrono::steady_clock::time_point drain_end_{};
  int64_t window_;  // maximum number of rows in the engine
  std::chrono::milliseconds max_drain_time_;
  bool in_background_ = false;
  std::exception_ptr failure_;  // of a callback of Background
  bool at_end_ = false;
  bool needs_input_ = false;
  bool input_is_file_;
  std::unordered_map<std::string, RecordHead> running_;
  PoolingRows pooling_rows_{nullptr};
  BatchCounts counts_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point end_;  // the last time at which a row was done or the input ended
};

}  // namespace vllm::app
