#include "app/commands/prompt_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "app/attachments/attached_files.h"
#include "app/model/model_files.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxPromptBytes = 64 << 20;

bool StdinIsPiped() {
  struct stat status {};
  if (fstat(STDIN_FILENO, &status) != 0) return false;
  if ((fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY) return false;  // closed: see ReserveStandardDescriptors
  return isatty(STDIN_FILENO) == 0 && !S_ISDIR(status.st_mode);
}

// Reads the files of --file. Their tokens are counted with the whole prompt, because the model is not loaded yet.
std::vector<AttachedFile> ReadFiles(const Settings& settings) {
  std::vector<AttachedFile> files;
  size_t total_bytes = 0;
  bool has_stdin = false;
  for (const std::string& name : settings.Texts("file")) {
    if (name != "-") {
      files.push_back(ReadAttachedFile(name, {}));
    } else if (std::exchange(has_stdin, true)) {
      throw ConfigError("--file -: standard input can be read only once");
    } else {
      files.push_back(CheckAttachedText("standard input", ReadFileOrStdin("-", kMaxAttachedBytes), {}));
    }
    total_bytes += files.back().text.size();
    if (total_bytes > kMaxAttachedBytes) {
      throw ConfigError("--file: the files have " + SizeText(static_cast<int64_t>(total_bytes)) + " (limit 16 MiB)");
    }
  }
  return files;
}

}  // namespace

std::optional<std::string> ReadPrompt(const Settings& settings) {
  const std::vector<AttachedFile> files = ReadFiles(settings);
  const std::vector<std::string> file_names = settings.Texts("file");
  const bool stdin_is_file = std::find(file_names.begin(), file_names.end(), "-") != file_names.end();
  std::string words;
  bool has_words = false;
  bool asks_for_stdin = false;
  for (const std::string& argument : settings.arguments) {
    if (argument == "-") {
      asks_for_stdin = true;
      continue;
    }
    if (has_words) words += ' ';
    words += argument;
    has_words = true;
  }
  std::string piped;
  if (!stdin_is_file && (asks_for_stdin || StdinIsPiped())) {
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if ((has_words || !files.empty()) && !asks_for_stdin && poll(&wait, 1, 2000) == 0) {
      PrintStatus("vllmcli: reading the rest of the prompt from standard input; add </dev/null if there is none");
    }
    piped = ReadFileOrStdin("-", kMaxPromptBytes);
    if (!piped.empty() && piped.back() == '\n') piped.pop_back();
  }
  if (piped.empty() && !has_words && files.empty()) return std::nullopt;
  std::string prompt = std::move(piped);
  if (has_words) prompt += (prompt.empty() ? "" : "\n") + words;
  if (!tokenizer::IsValidUtf8(prompt)) {
    PrintWarning("the prompt is not valid UTF-8; invalid bytes are replaced by U+FFFD");
    prompt = tokenizer::ReplaceInvalidUtf8(prompt);
  }
  return WithFiles(prompt, files);
}

std::string ReadRequiredPrompt(const Settings& settings, const std::optional<PresetPrompt>& preset) {
  std::optional<std::string> text = ReadPrompt(settings);
  if (text) return *std::move(text);
  if (preset && preset->preset().prompt && !preset->takes_input()) return "";
  std::string call = "vllmcli " + std::string(CommandInfoOf(settings.command).name);
  if (preset) call += " --preset " + preset->preset().name;
  throw ConfigError("no prompt; pass one as an argument or on standard input",
                    call + " 'TEXT', or: " + call + " - <FILE");
}

}  // namespace vllm::app
