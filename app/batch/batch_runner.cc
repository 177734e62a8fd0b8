#include "app/batch/batch_runner.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "app/output/duration_text.h"
#include "app/output/run_until_done.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

bool IsRegularFile(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

BatchRunner::BatchRunner(LLMEngine& engine, RowSource& source, BatchOutput& output, BatchLive& live, bool text_format,
                         int64_t total_bytes, std::optional<int64_t> total_rows)
    : engine_(engine),
      source_(source),
      output_(output),
      live_(live),
      text_format_(text_format),
      total_bytes_(total_bytes),
      total_rows_(total_rows),
      // Twice the largest batch, so that the scheduler has waiting rows when others finish.
      window_(2 * engine.config().scheduler.max_num_seqs),
      input_is_file_(IsRegularFile(source.reader().fd())),
      start_(std::chrono::steady_clock::now()),
      end_(start_) {}

void BatchRunner::Put(int64_t row_index, const SafeText& record) {
  end_ = std::chrono::steady_clock::now();
  if (output_.is_stdout() && StandardOutput().IsTerminal()) progress_.Clear();
  output_.Put(row_index, record);
}

void BatchRunner::Fail(const RowId& id, std::string_view code, std::string_view message) {
  ++counts_.num_failed;
  live_.AddError(id.line, message);
  if (text_format_) {
    if (!in_background_ && !live_.shows_view()) {
      progress_.Clear();
      PrintError("line " + std::to_string(id.line) + ": " + std::string(message));
    }
    Put(id.index, SafeText());
  } else {
    Put(id.index, SafeJson(ErrorRecord(id, code, message)));
  }
}

void BatchRunner::SubmitRows() {
  needs_input_ = false;
  // With --ordered, records wait for those of earlier rows. Limit them too, or one slow row could exhaust memory.
  const int64_t max_held_bytes = *engine_.config().max_output_memory_bytes;
  while (!at_end_ && static_cast<int64_t>(running_.size()) < window_ && output_.num_held() < 16 * window_ &&
         output_.held_bytes() < max_held_bytes) {
    const RowSource::Status status = source_.Next();
    if (status == RowSource::Status::kEnd) {
      at_end_ = true;
      end_ = std::chrono::steady_clock::now();
    } else if (status == RowSource::Status::kNeedInput) {
      if (!input_is_file_) {
        needs_input_ = true;
        return;
      }
      source_.reader().Fill();
    } else if (status == RowSource::Status::kBadRow) {
      ++counts_.num_rows;
      Fail(source_.id, source_.code, source_.message);
    } else {
      ++counts_.num_rows;
      BatchRow& row = source_.row;
      const RowId& id = source_.id;
      row.params.output_kind = RequestOutputKind::kFinalOnly;
      const std::string request_id = id.custom_id ? "row:" + *id.custom_id : "row-" + std::to_string(id.index);
      try {
        engine_.AddRequest(request_id, row.prompt, row.params, row.options);
      } catch (const RequestError& error) {
        Fail(id, "invalid_request", error.what());
        continue;
      } catch (const EngineDeadError& error) {
        Fail(id, "engine_error", error.what());
        throw;
      }
      running_.emplace(request_id,
                       RecordHead{id, row.kind, row.model.empty() ? engine_.config().model.model : row.model,
                                  row.params.logprobs.has_value(), row.params.prompt_logprobs.has_value(),
                                  row.params.skip_special_tokens, row.is_chat ? reasoning_format_ : nullptr});
    }
  }
}

void BatchRunner::Finish(const RequestOutput& output) {
  const auto it = running_.find(output.request_id);
  if (it == running_.end()) return;
  const RecordHead head = std::move(it->second);
  running_.erase(it);
  counts_.num_prompt_tokens += static_cast<int64_t>(output.prompt_token_ids.size());
  counts_.num_cached_tokens += output.num_cached_tokens;
  for (const CompletionOutput& completion : output.outputs) {
    counts_.num_generation_tokens += static_cast<int64_t>(completion.token_ids.size());
  }
  for (const CompletionOutput& completion : output.outputs) {
    if (completion.finish_reason == FinishReason::kError) {
      Fail(head.id, "engine_error", output.error);
      return;
    }
    if (completion.finish_reason == FinishReason::kAbort) {
      Fail(head.id, "aborted", "the request was aborted in the live view");
      return;
    }
  }
  if (!text_format_) {
    Put(head.id.index, SafeJson(ResultRecord(head, output, engine_.tokenizer())));
    return;
  }
  std::string text;
  for (const CompletionOutput& completion : output.outputs) {
    if (&completion != &output.outputs.front()) text += '\n';
    const std::optional<ReasoningParts> parts = PartsOf(head, output, completion);
    text += parts ? parts->text : completion.text;
  }
  Put(head.id.index, SafeText(text));
}

std::optional<double> BatchRunner::TotalRows() const {
  if (total_rows_) return static_cast<double>(*total_rows_);
  if (total_bytes_ == 0 || source_.reader().bytes_consumed() == 0) return std::nullopt;
  // Assume that unread rows are on average as long as those read so far.
  return static_cast<double>(counts_.num_rows) * static_cast<double>(total_bytes_) /
         static_cast<double>(source_.reader().bytes_consumed());
}

void BatchRunner::Stop() {
  was_stopped_ = true;
  at_end_ = true;
  counts_.num_rows -= static_cast<int64_t>(running_.size());
  for (const auto& [request_id, head] : running_) {
    engine_.AbortRequest(request_id);
    // In a text, the number of a line is that of its row.
    if (text_format_) {
      Put(head.id.index, SafeText());
    } else {
      output_.Skip(head.id.index);
    }
  }
  running_.clear();
}

Seconds BatchRunner::elapsed() const { return (IsDone() ? end_ : std::chrono::steady_clock::now()) - start_; }

std::string BatchRunner::ProgressText() const {
  const double seconds = elapsed().count();
  const auto num_done = counts_.num_rows - static_cast<int64_t>(running_.size());
  const std::optional<double> total = TotalRows();
  std::string text = GroupedText(num_done);
  if (total) text += (total_rows_ ? "/" : "/~") + GroupedText(static_cast<int64_t>(*total + 0.5));
  std::array<char, 96> buffer{};
  std::snprintf(buffer.data(), buffer.size(), " rows, in %.1f tok/s, out %.1f tok/s",
                static_cast<double>(counts_.num_prompt_tokens) / seconds,
                static_cast<double>(counts_.num_generation_tokens) / seconds);
  text += buffer.data();
  if (const std::optional<Seconds> left = live_.time_left(); left && !IsDone()) {
    text += ", " + DurationText(std::chrono::ceil<std::chrono::seconds>(*left)) + " left";
  }
  return text;
}

void BatchRunner::UpdateLive() {
  const bool continues =
      live_.Update({counts_.num_rows - static_cast<int64_t>(running_.size()), counts_.num_failed, TotalRows(),
                    !total_rows_, counts_.num_prompt_tokens, counts_.num_generation_tokens, engine_.stats()});
  if (!continues && !was_stopped_) Stop();
}

void BatchRunner::ShowProgress() {
  UpdateLive();
  if (live_.shows_view()) return;
  if (progress_.IsDue()) progress_.Show(ProgressText());
}

void BatchRunner::WriteFinished(const std::vector<RequestOutput>& outputs) {
  for (const RequestOutput& output : outputs) {
    if (output.finished) Finish(output);
  }
}

void BatchRunner::FinishDead(const EngineDeadError& error) {
  try {
    while (!running_.empty()) WriteFinished(engine_.Step());
  } catch (const EngineDeadError&) {
    // All outputs from before the failure have been processed.
  }
  for (const auto& [request_id, head] : running_) Fail(head.id, "engine_error", error.what());
  running_.clear();
  progress_.Clear();
}

void BatchRunner::KeepFailure(const std::function<void()>& action) {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  try {
    action();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

BackgroundWork BatchRunner::Background() {
  in_background_ = true;
  BackgroundWork background;
  background.add_requests = [this] { KeepFailure([this] { SubmitRows(); }); };
  background.num_unfinished = [this] { return static_cast<int64_t>(running_.size()); };
  background.owns = [this](const std::string& request_id) { return running_.contains(request_id); };
  background.on_output = [this](const RequestOutput& output) {
    KeepFailure([&] {
      if (output.finished) Finish(output);
      UpdateLive();
    });
  };
  background.is_done = [this] { return IsDone(); };
  background.progress_text = [this] { return ProgressText(); };
  return background;
}

BatchCounts BatchRunner::Run() {
  in_background_ = false;
  try {
    RunRows();
  } catch (const EngineDeadError& error) {
    // Every submitted row gets its record before the program exits.
    FinishDead(error);
    throw;
  }
  progress_.Clear();
  return counts_;
}

void BatchRunner::RunRows() {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  RunCallbacks callbacks;
  callbacks.add_requests = [this] {
    SubmitRows();
    return !at_end_;
  };
  callbacks.input_fd = [this] { return needs_input_ ? source_.reader().fd() : -1; };
  callbacks.other_fd = [this] { return live_.KeyFd(); };
  callbacks.on_input = [this] { source_.reader().Fill(); };
  callbacks.on_outputs = [this](const std::vector<RequestOutput>& outputs) {
    WriteFinished(outputs);
    PrintEngineWarning(engine_);
    ShowProgress();
  };
  callbacks.on_signal = [this] {
    // The view takes the signal in on_outputs, because it leaves the alternate screen before the program stops.
    if (live_.shows_view() && !was_stopped_) return;
    // A chat that ran before has left SIGTSTP to the program.
    const int signal_number = TakeSignal();
    if (signal_number == SIGTSTP) {
      SuspendProcess();
    } else if (signal_number != 0) {
      throw Interrupted(signal_number);
    }
  };
  callbacks.watches_stdout = output_.is_stdout();
  RunUntilDone(engine_, callbacks);
}

}  // namespace vllm::app
