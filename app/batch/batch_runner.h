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
#include "app/batch/batch_record.h"
#include "app/batch/input/row_source.h"
#include "app/output/run_until_done.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"

namespace vllm::app {

struct BatchCounts {
  int64_t num_rows = 0;
  int64_t num_failed = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_generation_tokens = 0;
};

class BatchRunner {
 public:
  // Borrows the references. Reports the progress to `live`. `total_bytes` is the size of the input, or 0 if unknown.
  // `total_rows` is the number of rows of the input, if known.
  BatchRunner(LLMEngine& engine, RowSource& source, BatchOutput& output, BatchLive& live, bool text_format,
              int64_t total_bytes, std::optional<int64_t> total_rows);
  // Sets how the model marks its thinking in the answers of chats. Null, the default: answers are not split.
  void SetReasoningFormat(std::shared_ptr<const ReasoningFormat> format) { reasoning_format_ = std::move(format); }

  // Returns true if the user has stopped the batch in the live view. Rows that were running then have no records.
  bool was_stopped() const { return was_stopped_; }

  // Runs all rows. Throws Interrupted if a signal arrives. If the engine dies, writes an error record for each row that
  // was submitted and has not finished, and throws EngineDeadError. Throws ConfigError if the header row or the row
  // template is invalid. Throws OutputClosed, ResourceError.
  BatchCounts Run();

  // Returns the callbacks that run the rows while the main thread does other things. Borrows this. Nothing is printed
  // until Run is called, which runs the rows that are left. A callback that has thrown throws the same again, and so
  // does Run. REQUIRES: the input is a regular file.
  BackgroundWork Background();
  // Returns the progress, such as "120/1,000 rows, in 520.0 tok/s, out 80.2 tok/s, 3 min 20 s left".
  std::string ProgressText() const;
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
  // Writes a record. Erases the progress line first if both are on the terminal.
  void Put(int64_t row_index, const SafeText& record);
  void Fail(const RowId& id, std::string_view code, std::string_view message);
  void Finish(const RequestOutput& output);
  // Calls `action`. Keeps what it throws, because a command of the chat may report an exception and continue.
  void KeepFailure(const std::function<void()>& action);
  // Gives the live view and the publisher the progress. Stops the batch if the user has asked for it.
  void UpdateLive();
  void ShowProgress();
  // Aborts the running rows and takes no more.
  void Stop();
  // Returns the number of rows of the whole input. If it is unknown, estimates it from the bytes read so far. Returns
  // nullopt if that is impossible, because the size of the input is unknown too or nothing has been read.
  std::optional<double> TotalRows() const;

  LLMEngine& engine_;
  RowSource& source_;
  BatchOutput& output_;
  BatchLive& live_;
  bool text_format_;
  std::shared_ptr<const ReasoningFormat> reasoning_format_;
  int64_t total_bytes_;
  std::optional<int64_t> total_rows_;
  bool was_stopped_ = false;
  int64_t window_;  // maximum number of rows in the engine
  bool in_background_ = false;
  std::exception_ptr failure_;  // of a callback of Background
  bool at_end_ = false;
  bool needs_input_ = false;
  bool input_is_file_;
  std::unordered_map<std::string, RecordHead> running_;
  BatchCounts counts_;
  ProgressLine progress_{std::chrono::milliseconds(300)};
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point end_;  // the last time at which a row was done or the input ended
};

}  // namespace vllm::app
