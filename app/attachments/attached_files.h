// Files that are part of a message: @PATH in a chat and run --file. The text of each file follows the message in a
// fenced code block after the file's name. Functions without state; main thread.
//
//   Summarize notes.txt, please.              Summarize @notes.txt, please.
//                                        <-
//   notes.txt:
//   ```
//   text of the file
//   ```
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace vllm::app {

struct AttachedFile {
  std::string name;  // as the user gave it
  std::string text;
  int64_t num_tokens = 0;  // of the text; 0 without a tokenizer
};

// The tokenizer and the context of the model.
struct AttachmentLimits {
  const tokenizer::Tokenizer* tokenizer = nullptr;  // null: sizes are given in bytes
  int64_t max_tokens = 0;                           // of the context; 0: unlimited
};

inline constexpr size_t kMaxAttachedBytes = size_t{16} << 20;

// Reads a file. Throws ConfigError `file <name>: <why>` if it is not a regular file, cannot be read, is longer than
// kMaxAttachedBytes, is binary (contains NUL or is not UTF-8), or has more tokens than the limit.
AttachedFile ReadAttachedFile(const std::string& name, const AttachmentLimits& limits);
// The same for text that has been read already.
AttachedFile CheckAttachedText(const std::string& name, std::string text, const AttachmentLimits& limits);

// Returns `message` followed by the files.
std::string WithFiles(const std::string& message, const std::vector<AttachedFile>& files);

struct ExpandedMessage {
  std::string text;  // with the files
  std::vector<AttachedFile> files;
  std::vector<std::string> missing;  // words that look like a path with a slash, but name no file
};

// Replaces each @PATH by the path and appends the files. @PATH must follow a blank or begin a line, and PATH must be an
// existing file; other words and directories stay unchanged. A backslash before a blank makes it part of the
// path. Punctuation at the end of the word is not part of the path unless such a file exists. \@ becomes @ in such
// places. Throws ConfigError like ReadAttachedFile, and if all files together are longer than kMaxAttachedBytes.
ExpandedMessage ExpandFileReferences(const std::string& message, const AttachmentLimits& limits);

}  // namespace vllm::app
