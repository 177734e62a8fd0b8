#include "app/hub/pull/partial_blob.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "app/hub/pull/blob_lock.h"
#include "app/hub/pull/cache_files.h"
#include "app/hub/pull/resume_state.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartSuffix = ".vllmcli-part";
constexpr std::string_view kStateSuffix = ".vllmcli-state";

fs::path StatePathOf(const fs::path& part) {
  std::string path = part.string();
  path.replace(path.size() - kPartSuffix.size(), kPartSuffix.size(), kStateSuffix);
  return path;
}

// Returns the paths of the partial blobs of an etag.
std::vector<fs::path> PartsOf(const fs::path& blobs, const std::string& etag) {
  std::vector<fs::path> paths;
  for (const std::string& name : tokenizer::NamesInDirectory(blobs.string())) {
    if (name.starts_with(etag + ".") && name.ends_with(kPartSuffix)) paths.push_back(blobs / name);
  }
  return paths;
}

// Returns the state of a partial blob if it belongs to this file and the file holds the bytes that it lists.
std::optional<ResumeState> ReadState(const fs::path& part, const std::string& etag, int64_t size) {
  std::string text;
  tokenizer::ReadRegularFile(StatePathOf(part).string(), ResumeState::kMaxBytes, text);
  std::optional<ResumeState> state = ParseResumeState(text);
  if (!state || state->etag != etag || state->size != size || state->ranges.ranges().empty()) return std::nullopt;
  const std::optional<int64_t> stored = RegularFileSize(part);
  if (!stored || *stored < state->ranges.ranges().back().end) return std::nullopt;
  return state;
}

// Returns true if the process that wrote the state cannot be writing now.
bool OwnerHasEnded(const ResumeState& state) {
  return state.owner_host == HostName() && state.owner_pid > 0 && kill(static_cast<pid_t>(state.owner_pid), 0) != 0 &&
         errno == ESRCH;
}

void Remove(const fs::path& part) {
  unlink(part.c_str());
  unlink(StatePathOf(part).c_str());
}

}  // namespace

PartialBlob::PartialBlob(fs::path blobs, std::string etag, int64_t size, bool is_locked)
    : blobs_(std::move(blobs)), etag_(std::move(etag)), size_(size) {
  MakeCacheDirectory(blobs_);
  if (!TakeOver(is_locked)) Create();
}

PartialBlob::~PartialBlob() {
  if (!path_.empty() && ranges_.total() == 0) Remove(path_);
}

bool PartialBlob::TakeOver(bool is_locked) {
  std::optional<ResumeState> best;
  const std::vector<fs::path> parts = PartsOf(blobs_, etag_);
  for (const fs::path& part : parts) {
    std::optional<ResumeState> state = ReadState(part, etag_, size_);
    if (!state || (!is_locked && !OwnerHasEnded(*state))) continue;
    if (best && best->ranges.total() >= state->ranges.total()) continue;
    best = std::move(state);
    path_ = part;
  }
  if (is_locked) {
    for (const fs::path& part : parts) {
      if (part != path_) Remove(part);
    }
  }
  if (!best) return false;
  fd_ = tokenizer::UniqueFd(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd_.valid()) return false;
  state_path_ = StatePathOf(path_);
  ranges_ = best->ranges;
  is_resumed_ = true;
  // Names this process as the owner.
  is_saved_ = false;
  SaveState();
  return true;
}

void PartialBlob::Create() {
  path_ = blobs_ / (etag_ + "." + RandomSuffix() + std::string(kPartSuffix));
  state_path_ = StatePathOf(path_);
  fd_ = tokenizer::UniqueFd(open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd_.valid()) {
    const int error = errno;
    throw ResourceError("cannot create " + Escape(std::exchange(path_, {}).string()) + ": " + std::strerror(error));
  }
}

void PartialBlob::Write(int64_t offset, std::string_view bytes) {
  const int64_t begin = offset;
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd_.get(), bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      throw ResourceError("cannot write " + Escape(path_.string()) + ": " +
                          std::strerror(written < 0 ? errno : ENOSPC) +
                          "; the same command continues the download when there is space");
    }
    offset += written;
    bytes.remove_prefix(static_cast<size_t>(written));
    ranges_.Add({begin, offset});
    is_saved_ = false;
  }
}

void PartialBlob::Read(int64_t offset, std::span<char> bytes) const {
  while (!bytes.empty()) {
    const ssize_t num_read = pread(fd_.get(), bytes.data(), bytes.size(), offset);
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read <= 0) {
      throw ResourceError("cannot read " + Escape(path_.string()) + ": " +
                          (num_read < 0 ? std::strerror(errno) : "another program has shortened it"));
    }
    offset += num_read;
    bytes = bytes.subspan(static_cast<size_t>(num_read));
  }
}

void PartialBlob::SaveState() {
  if (is_saved_ || path_.empty()) return;
  ReplaceFile(state_path_, FormatResumeState({etag_, size_, getpid(), HostName(), ranges_}), false);
  is_saved_ = true;
}

void PartialBlob::Restart() {
  unlink(state_path_.c_str());
  ranges_.Clear();
  is_resumed_ = false;
  is_saved_ = true;
  if (ftruncate(fd_.get(), 0) != 0) {
    throw ResourceError("cannot truncate " + Escape(path_.string()) + ": " + std::strerror(errno));
  }
}

fs::path PartialBlob::Publish() {
  if (ftruncate(fd_.get(), size_) != 0 || fsync(fd_.get()) != 0) {
    throw ResourceError("cannot flush " + Escape(path_.string()) + ": " + std::strerror(errno));
  }
  const fs::path blob = blobs_ / etag_;
  RenameFile(path_, blob);
  path_.clear();
  unlink(state_path_.c_str());
  SyncDirectory(blobs_);
  return blob;
}

void PartialBlob::Discard() {
  if (!path_.empty()) Remove(path_);
  path_.clear();
}

int64_t StoredBytes(const fs::path& blobs, const std::string& etag, int64_t size) {
  int64_t bytes = 0;
  for (const fs::path& part : PartsOf(blobs, etag)) {
    const std::optional<ResumeState> state = ReadState(part, etag, size);
    if (state) bytes = std::max(bytes, state->ranges.total());
  }
  return bytes;
}

int64_t DownloadActivity(const fs::path& blobs, const std::string& etag) {
  uint64_t sum = 0;
  for (const std::string& name : tokenizer::NamesInDirectory(blobs.string())) {
    if (!name.starts_with(etag)) continue;
    struct stat status {};
    if (stat((blobs / name).c_str(), &status) != 0) continue;
    sum += static_cast<uint64_t>(status.st_size) + static_cast<uint64_t>(status.st_mtim.tv_sec) * 1000003 +
           static_cast<uint64_t>(status.st_mtim.tv_nsec);
  }
  return static_cast<int64_t>(sum);
}

void RemoveOldPartialBlobs(const fs::path& blobs, const fs::path& locks) {
  constexpr time_t kMaxAge = time_t{7} * 24 * 3600;
  for (const std::string& name : tokenizer::NamesInDirectory(blobs.string())) {
    const bool is_own = name.ends_with(kPartSuffix) || name.ends_with(kStateSuffix);
    struct stat status {};
    if (!is_own || lstat((blobs / name).c_str(), &status) != 0 || std::time(nullptr) - status.st_mtime < kMaxAge) {
      continue;
    }
    BlobLock lock(locks / (name.substr(0, name.find('.')) + ".lock"));
    if (!lock.TryLock()) continue;
    unlink((blobs / name).c_str());
  }
}

}  // namespace vllm::app
