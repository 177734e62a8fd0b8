#include "app/batch/batch_runner.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "app/output/duration_text.h"
#include "app/output/run_until_done.h"
#include "app/output/size_text.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/core/engine_monitor.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {
namespace {

bool IsRegularFile(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

BatchRunner::BatchRunner(LLMEngine& engine, RowSource& source, BatchOutput& output, BatchLive& live,
                         BatchProgressDisplay& progress, const BatchFormats& formats, int64_t total_bytes)
    : engine_(engine),
      source_(source),
      output_(output),
      live_(live),
      progress_(progress),
      formats_(formats),
      total_bytes_(total_bytes),
      // Twice the largest batch of all engines, so that each scheduler has waiting rows when others finish.
      window_(2 * engine.config().scheduler.max_num_seqs * engine.config().parallel.data_parallel_size *
              engine.config().parallel.num_processes),
      max_drain_time_(engine.config().parallel.num_processes > 1 ? kMaxDistributedDrainTime : kMaxDrainTime),
      input_is_file_(source.records().fd() < 0 || IsRegularFile(source.records().fd())),
      start_(std::chrono::steady_clock::now()),
      end_(start_) {}

void BatchRunner::PutHeads() {
  if (has_heads_) return;
  has_heads_ = true;
  table_.columns = source_.parser().columns();
  table_.delimiter = formats_.input == InputFormat::kTsv ? '\t' : ',';
  output_.PutHeads(formats_.output == BatchFormat::kCsv ? table_.Head() : "", RetryHead(formats_.input, table_));
}

void BatchRunner::Put(const RecordHead& head, JobEntry entry, std::string record) {
  end_ = std::chrono::steady_clock::now();
  if (output_.is_stdout() && StandardOutput().IsTerminal()) progress_.Clear();
  PutHeads();
  entry.index = head.id.index;
  entry.digest = head.id.digest;
  if (head.id.claims_id) entry.id = HashBytes128(*head.id.custom_id);
  entry.was_openai = head.was_openai;
  output_.Put(head.order, entry, std::move(record));
}

void BatchRunner::Fail(const RecordHead& head, std::string_view code, std::string_view message) {
  ++counts_.num_failed;
  live_.AddError(head.id.line, message);
  PutHeads();
  JobEntry entry;
  entry.status = RowStatusOf(code);
  entry.in_errors_file = output_.has_errors_file();
  if (entry.in_errors_file) {
    Put(head, entry, RetryRecord(head, formats_.input, table_, code, message));
  } else if (formats_.output == BatchFormat::kCsv) {
    Put(head, entry, table_.Error(head, message));
  } else if (formats_.output == BatchFormat::kText) {
    Put(head, entry, "");
  } else {
    Put(head, entry, std::string(SafeJson(ErrorRecord(head, code, message)).view()));
  }
  // Only records in JSON and in a table say what went wrong.
  const bool has_message =
      entry.in_errors_file ? formats_.input != InputFormat::kText : formats_.output != BatchFormat::kText;
  if (!has_message && !in_background_ && !live_.shows_view()) {
    progress_.Clear();
    PrintError("line " + std::to_string(head.id.line) + ": " + std::string(message));
  }
}

void BatchRunner::PrintWarnings() {
  std::vector<std::string> warnings = source_.parser().TakeWarnings();
  for (std::string& warning : tool_calls_.TakeWarnings()) warnings.push_back(std::move(warning));
  for (const std::string& warning : warnings) {
    progress_.Clear();
    if (!in_background_ && !live_.shows_view()) PrintWarning(warning);
  }
}

void BatchRunner::SubmitRows() {
  needs_input_ = false;
  // With --ordered, records wait for those of earlier rows. Limit them too, or one slow row could exhaust memory.
  const int64_t max_held_bytes = *engine_.config().max_output_memory_bytes;
  while (!at_end_ && static_cast<int64_t>(running_.size()) < window_ && output_.num_held() < 16 * window_ &&
         output_.held_bytes() < max_held_bytes) {
    const RowSource::Status status = source_.Next();
    PrintWarnings();
    if (status == RowSource::Status::kEnd) {
      at_end_ = true;
      input_ended_ = true;
      end_ = std::chrono::steady_clock::now();
      PutHeads();
      continue;
    }
    if (status == RowSource::Status::kNeedInput) {
      if (!input_is_file_) {
        needs_input_ = true;
        return;
      }
      source_.records().Fill();
      continue;
    }
    RecordHead head;
    head.id = source_.id;
    head.was_openai = source_.last_was_openai();
    head.order = counts_.num_rows++;
    if (output_.has_errors_file()) head.input_record = source_.record();
    if (status == RowSource::Status::kBadRow) {
      Fail(head, source_.code, source_.message);
      continue;
    }
    BatchRow& row = source_.row;
    const RowId& id = source_.id;
    head.kind = row.kind;
    head.model = row.model.empty() ? engine_.config().model.model : row.model;
    head.with_logprobs = row.params.logprobs.has_value();
    head.with_prompt_logprobs = row.params.prompt_logprobs.has_value();
    if (row.is_chat) head.format.reasoning = reasoning_format_;
    if (row.is_chat) head.format.tool_calls = tool_calls_.format();
    head.carried = std::move(row.carried);
    head.fields = std::move(row.fields);
    row.params.output_kind = RequestOutputKind::kFinalOnly;
    const std::string request_id = id.custom_id ? "row:" + *id.custom_id : "row-" + std::to_string(id.index);
    try {
      if (IsPooling(row.kind)) {
        if (formats_.output != BatchFormat::kJsonLines) {
          throw RequestError("url: vectors and rankings need --format jsonl");
        }
        pooling_rows_.Add(engine_, request_id, row);
        running_.emplace(request_id, std::move(head));
        continue;
      }
      tool_calls_.Apply(row.tools, row.params);
      head.format.skip_special_tokens = row.params.skip_special_tokens;
      head.format.tools = std::move(row.tools);
      engine_.AddRequest(request_id, row.prompt, row.params, row.options);
    } catch (const RequestError& error) {
      Fail(head, "invalid_request", error.what());
      continue;
    } catch (const EngineDeadError& error) {
      Fail(head, "engine_error", error.what());
      throw;
    } catch (const tokenizer::EncodingStopped&) {
      // A signal has arrived. The loop takes it, and lets the rows that run finish.
      if (in_background_) throw;
      Drop(head);
      return;
    }
    running_.emplace(request_id, std::move(head));
  }
}

void BatchRunner::FinishPooling(const std::string& row_id) {
  const auto it = running_.find(row_id);
  const RecordHead head = std::move(it->second);
  running_.erase(it);
  PoolingRows::Result result = pooling_rows_.Finish(head.id, head.model, row_id);
  counts_.num_prompt_tokens += result.num_prompt_tokens;
  counts_.num_cached_tokens += result.num_cached_tokens;
  if (!result.error.empty()) return Fail(head, "engine_error", result.error);
  if (result.is_aborted) return Fail(head, "aborted", "the request was aborted in the live view");
  JobEntry entry;
  entry.num_prompt_tokens = static_cast<uint32_t>(result.num_prompt_tokens);
  Put(head, entry, std::string(SafeJson(result.record).view()));
}

void BatchRunner::Finish(const RequestOutput& output) {
  if (pooling_rows_.Owns(output.request_id)) {
    if (const auto row_id = pooling_rows_.Take(output)) FinishPooling(*row_id);
    return;
  }
  const auto it = running_.find(output.request_id);
  if (it == running_.end()) return;
  const RecordHead head = std::move(it->second);
  running_.erase(it);
  if (output.rejected) return Fail(head, "invalid_request", output.error);
  counts_.num_prompt_tokens += static_cast<int64_t>(output.prompt_token_ids.size());
  counts_.num_cached_tokens += output.num_cached_tokens;
  for (const CompletionOutput& completion : output.outputs) {
    counts_.num_generation_tokens += static_cast<int64_t>(completion.token_ids.size());
  }
  for (const CompletionOutput& completion : output.outputs) {
    if (completion.finish_reason == FinishReason::kError) {
      Fail(head, "engine_error", output.error);
      return;
    }
    if (completion.finish_reason == FinishReason::kAbort) {
      Fail(head, "aborted", "the request was aborted in the live view");
      return;
    }
  }
  JobEntry entry;
  entry.num_prompt_tokens = static_cast<uint32_t>(output.prompt_token_ids.size());
  for (const CompletionOutput& completion : output.outputs) {
    entry.num_output_tokens += static_cast<uint32_t>(completion.token_ids.size());
  }
  switch (formats_.output) {
    case BatchFormat::kJsonLines:
      Put(head, entry, std::string(SafeJson(ResultRecord(head, output, engine_.tokenizer())).view()));
      break;
    case BatchFormat::kCsv:
      // The fields of the input are repeated byte by byte. A terminal gets SafeText from BatchOutput.
      Put(head, entry, table_.Result(head, output));
      break;
    case BatchFormat::kText:
      Put(head, entry, std::string(SafeText(TextRecord(head, output)).view()));
      break;
  }
}

std::optional<double> BatchRunner::TotalRows() const {
  const int64_t num_seen = counts_.num_rows + source_.num_skipped();
  if (input_ended_) return static_cast<double>(num_seen);
  if (total_rows_) return static_cast<double>(*total_rows_);
  if (total_bytes_ == 0 || source_.records().bytes_consumed() == 0) return std::nullopt;
  // Assume that unread rows are on average as long as those read so far.
  return static_cast<double>(num_seen) * static_cast<double>(total_bytes_) /
         static_cast<double>(source_.records().bytes_consumed());
}

void BatchRunner::Stop() {
  at_end_ = true;
  end_ = std::chrono::steady_clock::now();
  for (const auto& [request_id, head] : running_) {
    if (IsPooling(head.kind)) {
      pooling_rows_.Abort(engine_, request_id);
    } else {
      engine_.AbortRequest(request_id);
    }
    Drop(head);
  }
  running_.clear();
}

void BatchRunner::Drop(const RecordHead& head) {
  has_lost_rows_ = true;
  --counts_.num_rows;
  // In a text that no job can complete, the number of a line is that of its row.
  if (formats_.output == BatchFormat::kText && output_.job() == nullptr) {
    Put(head, JobEntry(), "");
  } else {
    output_.Skip(head.order);
  }
}

void BatchRunner::BeginDrain(int signal_number) {
  interrupt_signal_ = signal_number;
  drain_end_ = std::chrono::steady_clock::now() + max_drain_time_;
  at_end_ = true;
  if (EngineMonitor* monitor = engine_.client().monitor()) monitor->SetAdmissionPaused(true);
  progress_.Clear();
  if (!running_.empty()) {
    const bool is_short = max_drain_time_ < std::chrono::seconds(1);
    PrintStatus("[stopping: the rows that run have " +
                (is_short ? std::to_string(max_drain_time_.count()) + " ms" : DurationText(max_drain_time_)) +
                " to finish; Ctrl-C again stops at once]");
  }
}

Seconds BatchRunner::elapsed() const { return (IsDone() ? end_ : std::chrono::steady_clock::now()) - start_; }

BatchProgress BatchRunner::Progress() const {
  BatchProgress progress;
  progress.num_done = counts_.num_rows + source_.num_skipped() - static_cast<int64_t>(running_.size());
  progress.num_skipped = source_.num_skipped();
  progress.num_failed = counts_.num_failed;
  progress.num_rows = TotalRows();
  progress.num_rows_is_estimate = !total_rows_ && !input_ended_;
  progress.num_prompt_tokens = counts_.num_prompt_tokens;
  progress.num_generation_tokens = counts_.num_generation_tokens;
  progress.stats = engine_.stats();
  return progress;
}

std::string BatchRunner::ProgressText() const {
  const double seconds = elapsed().count();
  const BatchProgress progress = Progress();
  std::string text = GroupedText(progress.num_done);
  if (progress.num_rows) {
    text += (progress.num_rows_is_estimate ? "/~" : "/") + GroupedText(static_cast<int64_t>(*progress.num_rows + 0.5));
  }
  std::array<char, 96> buffer{};
  std::snprintf(buffer.data(), buffer.size(), " rows, in %.1f tok/s, out %.1f tok/s",
                static_cast<double>(counts_.num_prompt_tokens) / seconds,
                static_cast<double>(counts_.num_generation_tokens) / seconds);
  text += buffer.data();
  if (const std::optional<Seconds> left = live_.time_left(); left && !IsDone()) {
    text += ", " + DurationText(std::chrono::ceil<std::chrono::seconds>(*left)) + " left";
  }
  if (progress.num_failed > 0) text += ", " + GroupedText(progress.num_failed) + " failed";
  if (progress.stats.num_preemptions > 0) text += ", " + CountedText(progress.stats.num_preemptions, "preemption");
  return text;
}

void BatchRunner::UpdateLive() {
  if (scan_ != nullptr && !total_rows_) {
    if (const std::optional<JobInput> input = scan_->result()) {
      if (knows_all_rows_) total_rows_ = input->num_rows;
      if (output_.job() != nullptr) output_.job()->SetInput(*input);
      scan_ = nullptr;
    }
  }
  if (output_.job() != nullptr) output_.job()->Update();
  if (live_.Update(Progress()) || was_stopped_) return;
  if (const int signal_number = live_.signal_number(); signal_number != 0) {
    live_.CloseView();
    BeginDrain(signal_number);
    return;
  }
  was_stopped_ = true;
  Stop();
}

void BatchRunner::Update() {
  UpdateLive();
  if (interrupt_signal_ != 0 && !running_.empty()) {
    const bool is_over = std::chrono::steady_clock::now() >= drain_end_ || engine_.stats().num_running_reqs == 0;
    if (is_over) Stop();
  }
  if (!live_.shows_view() && progress_.IsDue()) {
    progress_.Update(Progress(), elapsed(), live_.time_left(), ProgressText());
  }
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
  for (const auto& [request_id, head] : running_) Fail(head, "engine_error", error.what());
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
  background.owns = [this](const std::string& request_id) {
    return running_.contains(request_id) || pooling_rows_.Owns(request_id);
  };
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

void BatchRunner::Run() {
  in_background_ = false;
  try {
    RunRows();
  } catch (const EngineDeadError& error) {
    // Every submitted row gets its record before the program exits.
    FinishDead(error);
    throw;
  } catch (...) {
    progress_.Clear();
    throw;
  }
  progress_.Clear();
}

void BatchRunner::RunRows() {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  RunCallbacks callbacks;
  callbacks.add_requests = [this] {
    SubmitRows();
    return !at_end_;
  };
  callbacks.input_fd = [this] { return needs_input_ ? source_.records().fd() : -1; };
  callbacks.other_fd = [this] { return live_.KeyFd(); };
  callbacks.on_input = [this] { source_.records().Fill(); };
  callbacks.on_outputs = [this](const std::vector<RequestOutput>& outputs) {
    WriteFinished(outputs);
    PrintEngineWarning(engine_);
    Update();
  };
  callbacks.on_signal = [this] {
    // The view takes the signal in on_outputs, because it leaves the alternate screen before the program stops.
    if (live_.shows_view() && !was_stopped_) return;
    // A chat that ran before has left SIGTSTP to the program.
    const int signal_number = TakeSignal();
    if (signal_number == SIGTSTP) {
      SuspendProcess();
    } else if (signal_number != 0) {
      if (interrupt_signal_ != 0) {
        Stop();
        throw Interrupted(signal_number);
      }
      BeginDrain(signal_number);
    }
  };
  callbacks.watches_stdout = output_.is_stdout();
  RunUntilDone(engine_, callbacks);
  if (interrupt_signal_ != 0) throw Interrupted(interrupt_signal_);
}

}  // namespace vllm::app
