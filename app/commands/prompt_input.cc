#include "app/commands/prompt_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "app/model/model_files.h"
#include "app/terminal/output_stream.h"
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

}  // namespace

std::optional<std::string> ReadPrompt(const Settings& settings) {
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
  if (asks_for_stdin || StdinIsPiped()) {
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if (has_words && !asks_for_stdin && poll(&wait, 1, 2000) == 0) {
      PrintStatus("vllmcli: reading the rest of the prompt from standard input; add </dev/null if there is none");
    }
    piped = ReadFileOrStdin("-", kMaxPromptBytes);
    if (!piped.empty() && piped.back() == '\n') piped.pop_back();
  }
  if (piped.empty() && !has_words) return std::nullopt;
  std::string prompt = std::move(piped);
  if (has_words) prompt += (prompt.empty() ? "" : "\n") + words;
  if (!tokenizer::IsValidUtf8(prompt)) {
    PrintWarning("the prompt is not valid UTF-8; invalid bytes are replaced by U+FFFD");
    prompt = tokenizer::ReplaceInvalidUtf8(prompt);
  }
  return prompt;
}

}  // namespace vllm::app
