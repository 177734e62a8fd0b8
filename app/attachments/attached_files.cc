#include "app/attachments/attached_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/editor/command_completer.h"
#include "app/editor/path_completion.h"
#include "app/output/size_text.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

[[noreturn]] void Fail(const std::string& name, const std::string& why) {
  throw ConfigError("file " + Escape(name) + ": " + why);
}

// Returns the number of tokens of `text` without special tokens.
int64_t CountTokens(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  return static_cast<int64_t>(tokenizer.Encode(text, /*add_special_tokens=*/false, /*parse_special=*/false).size());
}

// Returns ", about N tokens" for a file that is too long to be read completely, estimated from its beginning.
std::string EstimateText(int fd, size_t num_bytes, const AttachmentLimits& limits) {
  if (limits.tokenizer == nullptr) return "";
  std::string sample(1 << 16, '\0');
  const ssize_t num_read = pread(fd, sample.data(), sample.size(), 0);
  if (num_read <= 0) return "";
  sample.resize(static_cast<size_t>(num_read));
  const int64_t num_tokens = CountTokens(*limits.tokenizer, tokenizer::ReplaceInvalidUtf8(sample));
  const double per_byte = static_cast<double>(num_tokens) / static_cast<double>(sample.size());
  return ", about " + GroupedText(static_cast<int64_t>(per_byte * static_cast<double>(num_bytes))) + " tokens";
}

// Returns the first position that is not valid UTF-8, or the size.
size_t InvalidUtf8At(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(text, i);
    if (step.kind != tokenizer::Utf8Step::Kind::kValid) return i;
    i += step.length;
  }
  return text.size();
}

bool IsFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
}

// A path with PATH_MAX bytes, each after a backslash. Bounds the work for a message that is not prose.
constexpr size_t kMaxWordBytes = 2 * 4096;

// Returns the length of the word at `begin`, or a little more than kMaxWordBytes if it is longer.
size_t WordLength(std::string_view text, size_t begin) {
  size_t i = begin;
  while (i < text.size() && i - begin <= kMaxWordBytes && text[i] != ' ' && text[i] != '\t' && text[i] != '\n') {
    i += text[i] == '\\' && i + 1 < text.size() && text[i + 1] != '\n' ? 2 : 1;
  }
  return std::min(i, text.size()) - begin;
}

// Returns the longest beginning of `word` that names a file, without punctuation at its end if necessary.
std::optional<std::string_view> FileIn(std::string_view word) {
  constexpr int kMaxPunctuation = 8;
  if (word.size() > kMaxWordBytes) return std::nullopt;
  for (int i = 0; i <= kMaxPunctuation && !word.empty(); ++i) {
    if (IsFile(TypedPath(word))) return word;
    if (std::string_view(".,;:!?)]}'\"").find(word.back()) == std::string_view::npos) return std::nullopt;
    word.remove_suffix(1);
  }
  return std::nullopt;
}

// Returns more backticks than `text` has in a row anywhere, and at least three.
std::string FenceFor(std::string_view text) {
  size_t longest = 2;
  size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

}  // namespace

AttachedFile CheckAttachedText(const std::string& name, std::string text, const AttachmentLimits& limits) {
  const std::string size = SizeText(static_cast<int64_t>(text.size()));
  if (const size_t nul = text.find('\0'); nul != std::string::npos) {
    Fail(name, "is binary (" + size + ", NUL at byte " + std::to_string(nul) + "); only text can be sent");
  }
  if (const size_t invalid = InvalidUtf8At(text); invalid < text.size()) {
    Fail(name, "is not UTF-8 text (" + size + ", invalid at byte " + std::to_string(invalid) +
                   "); convert it, for example with iconv -t UTF-8");
  }
  const int64_t num_tokens = limits.tokenizer == nullptr ? 0 : CountTokens(*limits.tokenizer, text);
  if (limits.max_tokens > 0 && num_tokens > limits.max_tokens) {
    Fail(name, GroupedText(num_tokens) + " tokens do not fit in the context of " + GroupedText(limits.max_tokens) +
                   " tokens");
  }
  return {name, std::move(text), num_tokens};
}

AttachedFile ReadAttachedFile(const std::string& name, const AttachmentLimits& limits) {
  const std::string path = ExpandHome(name);
  const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
  if (!file.ok()) Fail(name, file.error);
  const auto num_bytes = static_cast<size_t>(file.status.st_size);
  if (num_bytes > kMaxAttachedBytes) {
    Fail(name, SizeText(file.status.st_size) + EstimateText(file.fd.get(), num_bytes, limits) + " (limit 16 MiB)");
  }
  std::string text;
  const tokenizer::RegularFile read_file = tokenizer::ReadRegularFile(path, kMaxAttachedBytes, text);
  if (!read_file.ok()) Fail(name, read_file.error);
  return CheckAttachedText(name, std::move(text), limits);
}

std::string WithFiles(const std::string& message, const std::vector<AttachedFile>& files) {
  std::string result = message;
  for (const AttachedFile& file : files) {
    const std::string fence = FenceFor(file.text);
    if (!result.empty()) result += result.back() == '\n' ? "\n" : "\n\n";
    result += file.name + ":\n" + fence + "\n" + file.text;
    if (!file.text.empty() && file.text.back() != '\n') result += '\n';
    result += fence;
  }
  return result;
}

ExpandedMessage ExpandFileReferences(const std::string& message, const AttachmentLimits& limits) {
  ExpandedMessage result;
  size_t total_bytes = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    if (!BeginsFileReference(message, i)) {
      result.text += message[i];
      continue;
    }
    if (message.compare(i, 2, "\\@") == 0) {
      result.text += '@';
      ++i;
      continue;
    }
    if (message[i] != '@') {
      result.text += message[i];
      continue;
    }
    const std::string_view word = std::string_view(message).substr(i + 1, WordLength(message, i + 1));
    const std::optional<std::string_view> reference = FileIn(word);
    if (!reference) {
      if (word.size() <= kMaxWordBytes && word.find('/') != std::string_view::npos) result.missing.emplace_back(word);
      result.text += '@';
      continue;
    }
    const std::string name = UnescapePath(*reference);
    const bool is_new = std::none_of(result.files.begin(), result.files.end(),
                                     [&](const AttachedFile& file) { return file.name == name; });
    if (is_new) {
      result.files.push_back(ReadAttachedFile(name, limits));
      total_bytes += result.files.back().text.size();
      if (total_bytes > kMaxAttachedBytes) {
        throw ConfigError("the files of this message: " + SizeText(static_cast<int64_t>(total_bytes)) +
                          " (limit 16 MiB)");
      }
    }
    result.text += name;
    i += reference->size();
  }
  result.text = WithFiles(result.text, result.files);
  return result;
}

}  // namespace vllm::app
