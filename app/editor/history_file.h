// HistoryFile: the file with the input history of chats. It is opened without following a symbolic link, and its mode
// is set to 0600. Several processes may use it at once. Each entry is appended with one write(), and a process that
// shortens the file tries not to lose entries that another process appends at that time. Owned by LineEditor; main
// thread.
//
//   file  := entry*
//   entry := "#" seconds "\n" text "\n"       seconds since 1970 in decimal; `text` may have several lines
// A line of `text` that begins with zero or more backslashes, "#" and a digit is stored with one more backslash in
// front, which the reader removes. So no line of `text` is taken for the first line of an entry. Example: the message
// "a\n#1 b", typed at second 7, is stored as "#7\na\n\\#1 b\n".
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

class HistoryFile {
 public:
  static constexpr size_t kMaxEntries = 2000;
  // Only the last kMaxBytes bytes of a longer file are read.
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  // Opens or creates the file. If it has more than twice `max_entries` entries, tries to shorten it to the newest
  // `max_entries`. Throws ResourceError `history <path>: <why>`.
  explicit HistoryFile(std::string path, size_t max_entries = kMaxEntries);

  // Returns the entries that were in the file when it was opened, oldest first, after shortening.
  const std::vector<std::string>& entries() const { return entries_; }
  // Appends an entry. Throws ResourceError.
  void Append(std::string_view text);

 private:
  void Open();
  void Shorten(size_t max_entries);
  [[noreturn]] void Fail(const std::string& why) const;

  std::string path_;
  tokenizer::UniqueFd fd_;
  std::vector<std::string> entries_;
};

}  // namespace vllm::app
