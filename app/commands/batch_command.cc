#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/batch/batch_check.h"
#include "app/batch/batch_live.h"
#include "app/batch/batch_runner.h"
#include "app/commands/chat_loop.h"
#include "app/commands/commands.h"
#include "app/model/load_model.h"
#include "app/output/request_stats.h"
#include "app/output/size_text.h"
#include "app/presets/preset_prompt.h"
#include "app/screen/curses_screen.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/signals.h"
#include "app/terminal/terminal_modes.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

InputFormat FormatOf(const Settings& settings, const std::string& path) {
  std::string name = settings.Text("input-format").value_or("");
  if (name.empty() && path == "-") return InputFormat::kJsonLines;
  if (name.empty()) {
    name = std::filesystem::path(path).extension().string();
    if (!name.empty()) name.erase(0, 1);
  }
  if (name == "txt") return InputFormat::kText;
  if (name == "jsonl") return InputFormat::kJsonLines;
  if (name == "csv") return InputFormat::kCsv;
  if (name == "tsv") return InputFormat::kTsv;
  throw ConfigError("batch input " + path + ": no known file extension; use --input-format txt, jsonl, csv or tsv",
                    "txt: one prompt per line; jsonl: one JSON object per line; csv, tsv: a table with a header");
}

char DelimiterOf(InputFormat format) {
  if (format == InputFormat::kCsv) return ',';
  return format == InputFormat::kTsv ? '\t' : '\0';
}

// The input of a batch: a regular file, or a FIFO or device, which is read as data arrives.
class InputFile {
 public:
  explicit InputFile(const std::string& path) {
    if (path == "-") {
      fd_ = STDIN_FILENO;
      return;
    }
    // O_NONBLOCK: open() must not wait for the writer of a FIFO. AwaitWriter waits for it and polls for signals.
    owned_ = tokenizer::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    fd_ = owned_.get();
    struct stat status {};
    if (fd_ < 0) {
      const int error = errno;
      const bool is_socket = error == ENXIO && stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
      const std::string message = "batch input " + path + ": " + (is_socket ? "is a socket" : std::strerror(error));
      if (error == EMFILE || error == ENFILE) throw ResourceError(message);
      throw ModelError(message, error == ENOENT ? "the name - reads the rows from standard input" : "");
    }
    if (fstat(fd_, &status) == 0 && S_ISDIR(status.st_mode))
      throw ModelError("batch input " + path + ": is a directory");
    if (S_ISFIFO(status.st_mode)) AwaitWriter();
    fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
  }

  int fd() const { return fd_; }
  int64_t size() const {
    struct stat status {};
    return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
  }

 private:
  void AwaitWriter() const {
    while (true) {
      std::array<pollfd, 2> fds = {{{fd_, POLLIN, 0}, {SignalFd(), POLLIN, 0}}};
      const int num_ready = poll(fds.data(), fds.size(), -1);
      ThrowIfInterrupted();
      if (num_ready > 0 && fds[0].revents != 0) return;
    }
  }

  tokenizer::UniqueFd owned_;
  int fd_ = -1;
};

// Returns the number of rows for the progress line. Returns nullopt if no progress line is shown, or if counting is not
// cheap: for a stream, a table whose fields may contain line breaks, or a file so long that reading it would delay the
// start.
std::optional<int64_t> CountRows(const InputFile& input, InputFormat format, bool shows_view) {
  constexpr int64_t kMaxBytes = 32 << 20;
  const bool is_lines = format == InputFormat::kText || format == InputFormat::kJsonLines;
  if (!is_lines || input.size() == 0 || input.size() > kMaxBytes ||
      (!shows_view && (IsQuiet() || !CanMoveCursor(STDERR_FILENO)))) {
    return std::nullopt;
  }
  std::string buffer(1 << 16, '\0');
  int64_t num_rows = 0;
  bool is_blank = true;
  for (int64_t offset = 0; offset < input.size();) {
    const ssize_t got = pread(input.fd(), buffer.data(), buffer.size(), offset);
    if (got <= 0) return std::nullopt;
    offset += got;
    for (const char c : std::string_view(buffer).substr(0, static_cast<size_t>(got))) {
      if (c == '\n') {
        num_rows += is_blank ? 0 : 1;
        is_blank = true;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        is_blank = false;
      }
    }
  }
  return num_rows + (is_blank ? 0 : 1);
}

// Throws ConfigError if the live view cannot be shown.
void CheckView(const std::string& output_path) {
  if (!CanUseScreen()) {
    throw ConfigError("--live: needs a terminal; vllmcli top --json prints the same from another one");
  }
  if (output_path.empty() && StandardOutput().IsTerminal()) {
    throw ConfigError("--live: the view uses the terminal; write the answers to a file with -o FILE");
  }
}

bool WritesText(const Settings& settings) { return settings.Text("format").value_or("jsonl") == "text"; }

// Returns true if the batch certainly contains text, as a prompt or as an answer. JSON Lines input and output may
// consist of token ids only.
bool NeedsTokenizer(const Settings& settings, InputFormat format) {
  return format != InputFormat::kJsonLines || settings.Has("template") || settings.Has("preset") ||
         WritesText(settings);
}

// Prints the summary of a finished batch. --quiet suppresses it.
void PrintSummary(const BatchCounts& counts, Seconds elapsed, const std::string& output_path) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f s (%.1f output tokens/s)", elapsed.count(),
                static_cast<double>(counts.num_generation_tokens) / elapsed.count());
  PrintStatus(CountedText(counts.num_rows, "row") + ", " + GroupedText(counts.num_failed) + " failed, " +
              GroupedText(counts.num_prompt_tokens) + " prompt and " + GroupedText(counts.num_generation_tokens) +
              " output tokens in " + text.data() + (output_path.empty() ? "" : "; written to " + output_path));
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
void CheckCanChat(const Settings& settings, const InputFile& input, const std::string& output_path) {
  const auto fail = [](const std::string& why) {
    throw ConfigError("batch --chat: " + why, "vllmcli batch prompts.jsonl -o answers.jsonl --chat");
  };
  if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) fail("needs a terminal for the chat");
  if (input.size() == 0) fail("INPUT must be a file with rows, not a stream");
  if (output_path.empty()) fail("needs --output, because the chat uses standard output");
  if (settings.Switch("live")) fail("cannot be combined with --live; /engine in the chat shows the engine");
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

}  // namespace

int BatchCommand(const Settings& given) {
  Settings settings = given;
  if (settings.arguments.size() != 1) {
    throw ConfigError("batch: expects one INPUT (- for standard input)",
                      "vllmcli batch prompts.txt -o answers.jsonl answers each line of a file");
  }
  for (const char* name : {"chat", "live"}) {
    if (settings.Switch("check") && settings.Switch(name)) {
      throw ConfigError(std::string("batch: --") + name + " cannot be used with --check, which generates nothing");
    }
  }
  const std::optional<PresetPrompt> preset = PresetOf(settings);
  const std::string& path = settings.arguments[0];
  const InputFormat format = FormatOf(settings, path);
  const InputFile input(path);
  std::string output_path = settings.Text("output").value_or("");
  if (output_path == "-") output_path.clear();
  const bool overwrite = settings.Switch("overwrite");
  CheckBatchOutput(output_path, overwrite, input.fd());
  RowDefaults defaults;
  defaults.preset = preset;
  // The columns of a table are variables too; RowParser checks them with its header.
  if (preset && DelimiterOf(format) == '\0') preset->CheckVariables();
  defaults.system = settings.Text("system").value_or("");
  if (settings.Has("apply-chat-template")) defaults.prompts_are_chats = settings.Switch("apply-chat-template");
  RecordReader reader(input.fd(), path == "-" ? "standard input" : path, DelimiterOf(format));
  if (settings.Switch("check")) {
    return CheckBatch(settings, format, NeedsTokenizer(settings, format), defaults, reader);
  }

  const bool chats = settings.Switch("chat");
  if (chats) CheckCanChat(settings, input, output_path);
  const bool shows_view = settings.Switch("live");
  if (shows_view) CheckView(output_path);
  if (chats) {
    // A message of the chat cancels the current step, so shorter steps lose less work.
    settings.Set(*FindFlag("max-num-batched-tokens"), {"512"}, SettingSource::kDefault, "--chat");
  }
  LoadedModel model = LoadModel(settings, NeedsTokenizer(settings, format));
  defaults.params = model.sampling_params;
  RowParser parser(format, defaults, model.renderer.get());
  RowSource source(reader, parser, settings.Text("template"));
  BatchOutput output(output_path, overwrite, input.fd(), settings.Switch("ordered"));
  const std::optional<int64_t> num_rows = CountRows(input, format, shows_view);
  BatchLive live(model.publisher->source(), path, output_path, shows_view);
  BatchRunner runner(*model.engine, source, output, live, WritesText(settings), input.size(), num_rows);
  runner.SetReasoningFormat(model.reasoning_format);
  if (chats) {
    ChatInFront(model, settings, runner, path);
    // Text output has no records of failures.
    if (WritesText(settings)) PrintErrors(live);
  }
  const BatchCounts counts = runner.Run();
  const Seconds elapsed = runner.elapsed();
  live.CloseView();
  if (shows_view) PrintErrors(live);
  PrintSummary(counts, elapsed, output_path);
  if (settings.Switch("stats")) PrintStats(counts, model, elapsed);
  if (runner.was_stopped()) {
    PrintError("batch stopped: the rows that were done before are in " +
               (output_path.empty() ? std::string("the output") : output_path));
    return 1;
  }
  if (counts.num_failed > 0) {
    PrintError(std::to_string(counts.num_failed) + " of " + std::to_string(counts.num_rows) + " rows failed");
    return 1;
  }
  return 0;
}

}  // namespace vllm::app
