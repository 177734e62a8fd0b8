#include "app/editor/history_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns true if the line, apart from leading backslashes, looks like the first line of an entry.
bool LooksLikeStart(std::string_view line) {
  const size_t hash = std::min(line.find_first_not_of('\\'), line.size());
  return hash + 1 < line.size() && line[hash] == '#' && IsDigit(line[hash + 1]);
}

std::string EntryText(std::string_view text) {
  std::string entry = "#" + std::to_string(std::time(nullptr)) + "\n";
  while (true) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (LooksLikeStart(line)) entry += '\\';
    entry.append(line).push_back('\n');
    if (end == std::string_view::npos) return entry;
    text.remove_prefix(end + 1);
  }
}

// Lines before the first "#seconds" line come from a file without timestamps, where each line is an entry.
std::vector<std::string> ParseEntries(std::string_view text) {
  std::vector<std::string> entries;
  bool has_start = false;
  bool is_first_line = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (LooksLikeStart(line) && line.front() == '#') {
      has_start = true;
      is_first_line = true;
      continue;
    }
    if (LooksLikeStart(line)) line.remove_prefix(1);
    if (!has_start || is_first_line) {
      entries.emplace_back(line);
    } else {
      entries.back().append("\n").append(line);
    }
    is_first_line = false;
  }
  return entries;
}

std::string ReadEnd(int fd, size_t max_bytes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return "";
  const auto size = static_cast<size_t>(status.st_size);
  const size_t begin = size > max_bytes ? size - max_bytes : 0;
  std::string text(size - begin, '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t num_read = pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(begin + done));
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read <= 0) break;
    done += static_cast<size_t>(num_read);
  }
  text.resize(done);
  // The first entry may be incomplete.
  if (begin > 0) text.erase(0, std::min(text.find("\n#"), text.size() - 1) + 1);
  return text;
}

bool IsDeleted(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_nlink == 0;
}

}  // namespace

HistoryFile::HistoryFile(std::string path, size_t max_entries) : path_(std::move(path)) {
  Open();
  entries_ = ParseEntries(ReadEnd(fd_.get(), kMaxBytes));
  if (entries_.size() > 2 * max_entries) Shorten(max_entries);
}

void HistoryFile::Fail(const std::string& why) const { throw ResourceError("history " + Escape(path_) + ": " + why); }

void HistoryFile::Open() {
  const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  fd_ = tokenizer::UniqueFd(open(path_.c_str(), flags, 0600));
  if (!fd_.valid()) Fail(errno == ELOOP ? "is a symbolic link" : std::strerror(errno));
  struct stat status {};
  if (fstat(fd_.get(), &status) != 0) Fail(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) Fail("not a regular file (" + tokenizer::FileTypeName(status.st_mode) + ")");
  if (status.st_uid != geteuid()) Fail("belongs to another user (uid " + std::to_string(status.st_uid) + ")");
  if ((status.st_mode & 07777u) != 0600 && fchmod(fd_.get(), 0600) != 0) Fail(std::strerror(errno));
}

void HistoryFile::Append(std::string_view text) {
  // The lock keeps another process from replacing the file between the check and the write. Shorten holds the lock for
  // a few milliseconds. If the process that holds it is suspended, Append writes without the lock after a second, and
  // the entry may be lost.
  constexpr int kMaxTries = 100;
  constexpr int kPauseMs = 10;
  for (int i = 0; i < kMaxTries; ++i) {
    const bool is_locked = flock(fd_.get(), LOCK_SH | LOCK_NB) == 0;
    const bool is_deleted = IsDeleted(fd_.get());
    if (is_locked && !is_deleted) break;
    if (is_deleted) {
      Open();
    } else {
      poll(nullptr, 0, kPauseMs);
    }
  }
  const int error = tokenizer::WriteAll(fd_.get(), EntryText(text));
  flock(fd_.get(), LOCK_UN);
  if (error != 0) Fail(std::strerror(error));
}

void HistoryFile::Shorten(size_t max_entries) {
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 || IsDeleted(fd_.get())) return;
  // Read again under the lock, because another process may have added entries.
  entries_ = ParseEntries(ReadEnd(fd_.get(), kMaxBytes));
  if (entries_.size() > max_entries) {
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(max_entries));
  }
  std::string text;
  for (const std::string& entry : entries_) text += EntryText(entry);
  const std::string name = path_ + ".new-" + std::to_string(std::random_device()());
  tokenizer::UniqueFd shorter(open(name.c_str(), O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const bool is_replaced =
      shorter.valid() && tokenizer::WriteAll(shorter.get(), text) == 0 && rename(name.c_str(), path_.c_str()) == 0;
  if (!is_replaced) {
    // Keep the long file.
    if (shorter.valid()) unlink(name.c_str());
    flock(fd_.get(), LOCK_UN);
    return;
  }
  fd_ = std::move(shorter);
}

}  // namespace vllm::app
