// HistoryFile: the lines typed in earlier chats, kept for their owner alone. One descriptor, opened without following
// links and set to mode 0600, serves for loading and appending. Several windows may use one file at once: each line is
// one write at the end of the file, and a rewrite that shortens the file loses no line. Main thread.
//
//   file  := entry*
//   entry := "#" seconds "\n" text "\n"       seconds since 1970 in decimal; `text` may have several lines
// A line of `text` that looks like the first line of an entry (any number of backslashes, "#", a digit) is written with
// one more backslash in front. Example: the message "a\n#1 b" of second 7 is "#7\na\n\\#1 b\n".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats/regular_file.h"

namespace vllm {

class HistoryFile {
 public:
  static constexpr size_t kMaxEntries = 2000;
  // Of a longer file only the end is read.
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  // Opens the file or creates it. A file of more than twice `max_entries` is cut to its newest `max_entries`.
  // Throws ResourceError `history <path>: <why>`.
  explicit HistoryFile(std::string path, size_t max_entries = kMaxEntries);

  // The entries that the file had when it was opened, oldest first.
  const std::vector<std::string>& entries() const { return entries_; }
  // Throws ResourceError.
  void Append(std::string_view text);

 private:
  void Open();
  void Shorten(size_t max_entries);
  [[noreturn]] void Fail(const std::string& why) const;

  std::string path_;
  UniqueFd fd_;
  std::vector<std::string> entries_;
};

}  // namespace vllm
