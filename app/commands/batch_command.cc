#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/batch/batch_check.h"
#include "app/batch/batch_input.h"
#include "app/batch/batch_live.h"
#include "app/batch/batch_progress.h"
#include "app/batch/batch_prompt.h"
#include "app/batch/batch_runner.h"
#include "app/batch/batch_target.h"
#include "app/batch/distributed/distributed_batch.h"
#include "app/batch/distributed/mpi_process.h"
#include "app/batch/distributed/rank_identity.h"
#include "app/batch/distributed/rank_program.h"
#include "app/batch/input_scan.h"
#include "app/batch/job_status.h"
#include "app/commands/chat_loop.h"
#include "app/commands/commands.h"
#include "app/model/load_model.h"
#include "app/model/tools_setting.h"
#include "app/output/request_stats.h"
#include "app/output/size_text.h"
#include "app/pooling/pooling_model.h"
#include "app/presets/preset_prompt.h"
#include "app/screen/curses_screen.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// Throws ConfigError if the live view cannot be shown.
void CheckView(const std::string& output_path) {
  if (!CanUseScreen()) {
    throw ConfigError("--live: needs a terminal; vllmcli top --json prints the same from another one");
  }
  if (output_path.empty() && StandardOutput().IsTerminal()) {
    throw ConfigError("--live: the view uses the terminal; write the answers to a file with -o FILE");
  }
}

BatchFormat OutputFormatOf(const Settings& settings) {
  const std::string format = settings.Text("format").value_or("jsonl");
  if (format == "csv") return BatchFormat::kCsv;
  return format == "text" ? BatchFormat::kText : BatchFormat::kJsonLines;
}

bool WritesText(const Settings& settings) { return OutputFormatOf(settings) != BatchFormat::kJsonLines; }

// Returns true if the batch certainly contains text, as a prompt or as an answer. JSON Lines input and output may
// consist of token ids only.
bool NeedsTokenizer(const Settings& settings, InputFormat format) {
  return format != InputFormat::kJsonLines || settings.Has("preset") || settings.Has("prompt") || WritesText(settings);
}

// Prints the summary of a batch, also of an interrupted one. --quiet suppresses it.
void PrintSummary(const BatchRunner& runner, int64_t num_failed, const std::string& output_path) {
  const BatchCounts& counts = runner.counts();
  const Seconds elapsed = runner.elapsed();
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f s (%.1f output tokens/s)", elapsed.count(),
                static_cast<double>(counts.num_generation_tokens) / elapsed.count());
  const std::string skipped =
      runner.num_skipped() > 0 ? " (" + GroupedText(runner.num_skipped()) + " done before)" : std::string();
  PrintStatus(CountedText(counts.num_rows + runner.num_skipped(), "row") + skipped + ", " + GroupedText(num_failed) +
              " failed, " + GroupedText(counts.num_prompt_tokens) + " prompt and " +
              GroupedText(counts.num_generation_tokens) + " output tokens in " + text.data() +
              (output_path.empty() ? "" : "; written to " + output_path));
}

void PrintStats(const BatchCounts& counts, const LoadedModel& model, Seconds elapsed) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%.2f rows/s, prompt %.1f tokens/s (%lld tokens cached), load %.2f s",
                static_cast<double>(counts.num_rows) / elapsed.count(),
                static_cast<double>(counts.num_prompt_tokens) / elapsed.count(),
                static_cast<long long>(counts.num_cached_tokens), model.load_time.count());
  PrintNote(text.data());
  for (const std::string& line : StatsLines(*model.engine)) PrintNote(line);
}

// Throws ConfigError if a chat cannot run in front of the batch.
void CheckCanChat(const Settings& settings, int64_t input_bytes, const std::string& output_path) {
  const auto fail = [](const std::string& why) {
    throw ConfigError("batch --chat: " + why, "vllmcli batch prompts.jsonl -o answers.jsonl --chat");
  };
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) fail("needs a terminal for the chat");
  if (input_bytes == 0) fail("INPUT must be a file with rows, not a stream");
  if (output_path.empty()) fail("needs --output, because the chat uses standard output");
  if (settings.Switch("live")) fail("cannot be combined with --live; /engine in the chat shows the engine");
}

// Throws ConfigError for flags about running tools, which only the chat in front of a batch does.
void CheckRunsNoTools(const Settings& settings) {
  for (const char* name : {"approve-tools", "chain-limit", "mcp"}) {
    if (settings.SourceOf(name) != SettingSource::kCommandLine) continue;
    throw ConfigError("batch: --" + std::string(name) + " needs --chat, because rows run no tools",
                      "--tools shows tools to the model, and the output has its calls");
  }
}

// Prints the last failures of rows that could not be printed when they happened.
void PrintErrors(const BatchLive& live) {
  for (const LiveError& error : live.errors()) {
    PrintError("line " + std::to_string(error.line) + ": " + error.message);
  }
}

// Chats while the rows run. Afterwards the caller runs the rows that are left.
void ChatInFront(LoadedModel& model, const Settings& settings, BatchRunner& runner, const std::string& path) {
  const BackgroundWork background = runner.Background();
  model.background = &background;
  PrintStatus("[" + path + " runs behind this chat: /batch shows its progress; Ctrl-D ends only the chat]");
  try {
    RunChat(model, settings, std::nullopt);
  } catch (const EngineDeadError&) {
    // The runner writes a record for each row that has not finished, and throws the error again.
  } catch (...) {
    model.background = nullptr;
    throw;
  }
  model.background = nullptr;
  RestoreTerminal();
}

RowDefaults DefaultsOf(const Settings& settings, InputFormat format, const std::optional<PresetPrompt>& preset) {
  RowDefaults defaults;
  defaults.preset = preset;
  // The columns of a table are variables too; RowParser checks them with its header.
  if (preset && DelimiterOf(format) == '\0') preset->CheckVariables();
  defaults.system = settings.Text("system").value_or("");
  if (settings.Has("apply-chat-template")) defaults.prompts_are_chats = settings.Switch("apply-chat-template");
  defaults.carries = settings.Switch("carry");
  SetToolChoice(settings.Text("tool-choice").value_or("auto"), defaults.tools);
  TableOptions& table = defaults.table;
  table.row_template = settings.Text("template");
  table.system_template = settings.Text("system-template");
  table.id_column = settings.Text("id-column");
  table.carried_columns = settings.Texts("carry-column");
  if (const std::optional<std::string> file = settings.Text("template-file")) {
    if (table.row_template) throw ConfigError("--template-file: cannot be used with --template");
    constexpr size_t kMaxBytes = 16 << 20;
    table.row_template = ReadFileOrStdin(*file, kMaxBytes);
  }
  if (DelimiterOf(format) == '\0') {
    for (const char* name : {"template", "template-file", "system-template", "id-column", "carry-column"}) {
      if (settings.Has(name)) throw ConfigError(std::string("--") + name + ": needs a .csv or .tsv input");
    }
  }
  return defaults;
}

std::string ResumeHint(const std::string& output_path) {
  return "the same command with --resume continues the job; vllmcli batch status " + output_path + " describes it";
}

ProgressMode ProgressModeOf(const Settings& settings) {
  const std::string mode = settings.Text("progress").value_or("auto");
  if (mode == "plain") return ProgressMode::kPlain;
  if (mode == "json") return ProgressMode::kJson;
  return mode == "none" ? ProgressMode::kNone : ProgressMode::kAuto;
}

// Runs all rows. If the job ends early, says how it can be continued.
void RunRows(BatchRunner& runner, BatchLive& live, BatchOutput& output, const std::string& path) {
  const auto describe = [&] {
    live.CloseView();
    if (BatchJob* job = output.job()) {
      PrintSummary(runner, runner.counts().num_failed + job->finished().num_failed(), path);
      PrintStatus("[" + ResumeHint(path) + "]");
    }
  };
  try {
    runner.Run();
    return;
  } catch (const Interrupted&) {
    if (BatchJob* job = output.job()) job->Flush();
    if (runner.has_all_rows() && output.job() != nullptr) output.job()->End(output.is_ordered());
    describe();
    throw;
  } catch (const EngineDeadError&) {
    if (BatchJob* job = output.job()) job->Flush();
    describe();
    throw;
  } catch (const ResourceError& error) {
    live.CloseView();
    if (output.job() == nullptr) throw;
    throw ResourceError(std::string(error.what()) + "; the finished rows are kept, and --resume continues the job");
  }
}

}  // namespace

int BatchCommand(const Settings& given) {
  const std::optional<LaunchInfo> launch = LaunchOfThisProcess();
  if (launch && launch->rank > 0) return RunRank(given, *launch);
  Settings settings = given;
  if (settings.arguments.size() == 2 && settings.arguments[0] == "status") {
    return BatchStatus(settings, settings.arguments[1]);
  }
  if (settings.arguments.size() == 2 && settings.arguments[0] == "retry") RetrySettings(settings);
  if (settings.arguments.empty()) {
    throw ConfigError("batch: expects an INPUT (- for standard input)",
                      "vllmcli batch prompts.txt -o answers.jsonl answers each line of a file");
  }
  for (const char* name : {"chat", "live"}) {
    if (settings.Switch("check") && settings.Switch(name)) {
      throw ConfigError(std::string("batch: --") + name + " cannot be used with --check, which generates nothing");
    }
  }
  std::optional<DistributedBatch> distributed;
  if (launch && !settings.Switch("check")) {
    distributed.emplace(*launch);
    DistributedBatch::CheckSettings(settings);
  }
  const std::optional<PresetPrompt> preset = PromptOf(settings);
  BatchInput input = OpenInput(settings);
  RowDefaults defaults = DefaultsOf(settings, input.format, preset);
  if (settings.Switch("check")) {
    return CheckBatch(settings, input.format, NeedsTokenizer(settings, input.format), defaults, *input.records);
  }
  BatchTarget target = CheckTarget(settings, input, defaults);
  const bool chats = settings.Switch("chat");
  if (chats) {
    CheckCanChat(settings, input.size(), target.path);
  } else {
    CheckRunsNoTools(settings);
  }
  const bool shows_view = settings.Switch("live");
  if (shows_view) CheckView(target.path);
  const RowSelection selection = SelectionOf(settings, input);
  if (chats) {
    // A message of the chat cancels the current step, so shorter steps lose less work.
    settings.Set(*FindFlag("max-num-batched-tokens"), {"512"}, SettingSource::kDefault, "--chat");
  }
  LoadOptions options;
  options.tokenizer_required = NeedsTokenizer(settings, input.format);
  options.needs_generation = false;
  options.adjust_model = [&](const ModelLocation& location, ModelConfig& config) {
    AdjustPooling(settings, /*scores_pairs=*/true, location, config);
  };
  if (distributed) distributed->Extend(RankIdentity(settings, preset), options);
  LoadedModel model = LoadModel(settings, options);
  KeepContext(target, *model.engine);
  defaults.params = model.sampling_params;
  if (model.renderer != nullptr) defaults.tools.tools = ToolsOfVariables(model.renderer->variables());
  // The chat changes the variables of its template, such as the tools. Those of the rows stay the same.
  const std::unique_ptr<PromptRenderer> row_renderer =
      chats && model.renderer != nullptr ? model.renderer->Copy() : nullptr;
  RowParser parser(input.format, defaults, row_renderer != nullptr ? row_renderer.get() : model.renderer.get());
  RowSource source(*input.records, parser);
  source.SetSelection(selection);
  BatchOutput output = OpenOutput(target, settings.Switch("ordered"));
  if (BatchJob* job = output.job()) source.SkipFinished(job->finished());
  BatchLive live(model.publisher->source(), input.name, target.path, shows_view);
  BatchProgressDisplay progress(ProgressModeOf(settings));
  BatchRunner runner(*model.engine, source, output, live, progress, {input.format, OutputFormatOf(settings)},
                     selection.selects_all() ? input.size() : 0);
  if (input.files && selection.selects_all()) runner.SetTotalRows(input.files->num_rows);
  if (input.files && output.job() != nullptr) output.job()->SetInput(*input.files);
  std::unique_ptr<InputScan> scan;
  if (input.is_regular_file()) {
    scan = std::make_unique<InputScan>(input.fd(), RowFormat{DelimiterOf(input.format)});
    runner.SetScan(scan.get(), selection.selects_all());
  }
  runner.SetReasoningFormat(model.reasoning_format);
  std::optional<PoolingPrompts> pooling;
  // The wire between processes carries no vectors.
  if (model.tokenizer != nullptr && model.engine->config().parallel.num_processes == 1) {
    pooling.emplace(settings, model.engine->config().model, model.tokenizer);
    runner.SetPooling(&*pooling);
  }
  if (model.renderer != nullptr && model.tokenizer != nullptr) {
    runner.SetToolCalls(
        CallConstraints(ModelToolCallFormat(settings, *model.renderer, *model.tokenizer), model.tokenizer));
  }
  if (chats) {
    ChatInFront(model, settings, runner, input.name);
    // Text output has no records of failures.
    if (WritesText(settings)) PrintErrors(live);
  }
  RunRows(runner, live, output, target.path);
  const BatchCounts& counts = runner.counts();
  live.CloseView();
  if (shows_view) PrintErrors(live);
  int64_t num_failed = counts.num_failed;
  if (BatchJob* job = output.job()) {
    num_failed += job->finished().num_failed();
    if (runner.has_all_rows()) {
      job->End(settings.Switch("ordered"));
    } else {
      job->Flush();
    }
  }
  if (pooling) pooling->WarnOfCutTexts();
  PrintSummary(runner, num_failed, target.path);
  if (settings.Switch("stats")) {
    PrintStats(counts, model, runner.elapsed());
    if (distributed) PrintNote(distributed->StatsText());
  }
  if (runner.was_stopped()) {
    PrintError("batch stopped: the rows that were done before are in " +
               (target.path.empty() ? std::string("the output") : target.path));
    if (target.is_job) PrintStatus("[" + ResumeHint(target.path) + "]");
    return 1;
  }
  if (num_failed > 0) {
    PrintError(
        std::to_string(num_failed) + " of " + std::to_string(counts.num_rows + runner.num_skipped()) + " rows failed",
        target.is_job ? "vllmcli batch retry " + target.path + " runs them again" : "");
    return 1;
  }
  return 0;
}

}  // namespace vllm::app
