#include "app/batch/batch_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "app/batch/input/record_reader.h"
#include "app/batch/input/text_files.h"
#include "app/batch/input_scan.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

InputFormat FormatOf(const Settings& settings, const std::string& path) {
  const bool is_several = settings.arguments.size() > 1 || IsDirectoryOrPattern(path);
  if (is_several && !settings.Has("prompt") && !settings.Has("preset")) {
    throw ConfigError("batch: several files, a directory or a pattern need --prompt, because each file is one row",
                      "vllmcli batch notes/*.txt --prompt 'Summarize:' -o summaries.jsonl");
  }
  std::string name = settings.Text("input-format").value_or("");
  if (name.empty() && is_several) return InputFormat::kTextFiles;
  if (is_several) throw ConfigError("--input-format: cannot be used with several files");
  if (name.empty() && path == "-") return InputFormat::kJsonLines;
  if (name.empty()) {
    name = std::filesystem::path(path).extension().string();
    if (!name.empty()) name.erase(0, 1);
  }
  const bool is_one_row = (settings.Has("prompt") || settings.Has("preset")) && !settings.Has("input-format");
  if (name == "md" && is_one_row) return InputFormat::kTextFiles;
  if (name == "txt") return is_one_row && settings.Has("prompt") ? InputFormat::kTextFiles : InputFormat::kText;
  if (name == "jsonl") return InputFormat::kJsonLines;
  if (name == "csv") return InputFormat::kCsv;
  if (name == "tsv") return InputFormat::kTsv;
  throw ConfigError("batch input " + path + ": no known file extension; use --input-format txt, jsonl, csv or tsv",
                    "txt: one prompt per line; jsonl: one JSON object per line; csv, tsv: a table with a header");
}

}  // namespace

char DelimiterOf(InputFormat format) {
  if (format == InputFormat::kCsv) return ',';
  return format == InputFormat::kTsv ? '\t' : '\0';
}

InputFile::InputFile(const std::string& path) {
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
  if (fstat(fd_, &status) == 0 && S_ISDIR(status.st_mode)) throw ModelError("batch input " + path + ": is a directory");
  if (S_ISFIFO(status.st_mode)) AwaitWriter();
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
}

int64_t InputFile::size() const {
  struct stat status {};
  return fstat(fd_, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
}

void InputFile::AwaitWriter() const {
  while (true) {
    std::array<pollfd, 2> fds = {{{fd_, POLLIN, 0}, {SignalFd(), POLLIN, 0}}};
    const int num_ready = poll(fds.data(), fds.size(), -1);
    ThrowIfInterrupted();
    if (num_ready > 0 && fds[0].revents != 0) return;
  }
}

BatchInput OpenInput(const Settings& settings) {
  const std::string& path = settings.arguments[0];
  BatchInput input;
  input.format = FormatOf(settings, path);
  input.name = settings.arguments.size() > 1 ? std::to_string(settings.arguments.size()) + " inputs" : path;
  if (input.format == InputFormat::kTextFiles) {
    // The output may be in a directory of the input.
    std::vector<std::string> outputs;
    for (const char* name : {"output", "errors"}) {
      if (const std::optional<std::string> output = settings.Text(name)) {
        outputs.insert(outputs.end(), {*output, JobPath(*output)});
      }
    }
    auto files = std::make_unique<TextFiles>(settings.arguments, outputs);
    input.files = JobInput{Hash64(files->names()), 0, files->num_files()};
    input.records = std::move(files);
  } else {
    input.file = std::make_unique<InputFile>(path);
    input.records = std::make_unique<RecordReader>(input.file->fd(), path == "-" ? "standard input" : path,
                                                   DelimiterOf(input.format));
  }
  return input;
}

RowSelection SelectionOf(const Settings& settings, const BatchInput& input) {
  RowSelection selection;
  const auto count_of = [&](const char* name) {
    const int64_t count = settings.Integer(name).value_or(0);
    if (count < 0)
      throw ConfigError(std::string("--") + name + ": must not be negative (" + std::to_string(count) + ")");
    return count;
  };
  if (const std::optional<std::string> shard = settings.Text("shard")) selection.SetShard(ParseShard(*shard));
  if (settings.Has("sample")) {
    int64_t num_rows = input.files ? input.files->num_rows : 0;
    if (input.file != nullptr) {
      if (!input.is_regular_file()) throw ConfigError("--sample: needs a file, because its rows must be counted first");
      const std::optional<JobInput> scan = ScanInput(input.fd(), {DelimiterOf(input.format)}, InterruptWaits());
      if (!scan) throw ResourceError("batch input: cannot be read");
      num_rows = scan->num_rows;
    }
    selection.SetSample(count_of("sample"), num_rows, settings.Unsigned("seed").value_or(0));
  }
  if (settings.Has("limit")) selection.SetLimit(count_of("limit"));
  return selection;
}

}  // namespace vllm::app
