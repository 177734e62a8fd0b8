#include "app/hub/pull/file_download.h"

#include <algorithm>
#include <array>
#include <utility>

#include "app/http/url.h"
#include "app/hub/pull/cache_files.h"
#include "app/hub/repository_path.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr int64_t kMinPieceBytes = int64_t{4} << 20;
constexpr int64_t kMaxPieceBytes = int64_t{32} << 20;
constexpr int kPiecesPerFile = 8;
constexpr int kMaxRedirects = 10;
// Fewer bytes after a failure are no progress: a server that sends a few bytes per connection would never be given up.
constexpr int64_t kProgressBytes = int64_t{16} << 10;
constexpr std::chrono::milliseconds kLockInterval{250};
// A holder of the lock that stores nothing for so long is taken for dead. On network file systems, locks of crashed
// machines can stay.
constexpr std::chrono::minutes kMaxHolderSilence{10};

}  // namespace

// Receives one range of the file.
class FileDownload::RangeTransfer : public HttpReceiver {
 public:
  RangeTransfer(FileDownload& file, std::string url, ByteRange range)
      : file_(file), url_(std::move(url)), range_(range), position_(range.begin) {}

  bool OnHead(const HttpHead& head) override {
    head_ = head;
    if (is_stale_) return false;
    if (head.status() == 206) {
      const std::optional<ContentRange> range = ParseContentRange(head.Value("content-range"));
      const bool fits = range && range->begin == range_.begin && range->end <= range_.end;
      if (fits && range->size >= 0 && range->size != file_.file_.size) file_.FailSize(std::to_string(range->size));
      why_ = fits ? "" : "the server sent another range than requested";
      is_accepted_ = fits;
      if (!fits) return false;
    }
    if (head.status() == 200) {
      const std::optional<int64_t> length = ParseDecimal(head.Value("content-length"));
      if (length && *length != file_.file_.size) file_.FailSize(std::to_string(*length));
      if (range_ != ByteRange{0, file_.file_.size}) {
        file_.RestartAt(this);
        range_ = {0, file_.file_.size};
        position_ = 0;
      }
      is_accepted_ = true;
    }
    if (is_accepted_) file_.data_url_ = url_;
    return true;
  }

  bool OnBody(std::string_view bytes) override {
    if (is_stale_) return false;
    if (!is_accepted_) {
      // The body of an error or a redirect is not used, but reading it keeps the connection open.
      num_ignored_ += bytes.size();
      return num_ignored_ <= HttpHead::kMaxBytes;
    }
    if (static_cast<int64_t>(bytes.size()) > range_.end - position_) {
      why_ = "the server sent more bytes than requested";
      return false;
    }
    file_.partial_->Write(position_, bytes);
    position_ += static_cast<int64_t>(bytes.size());
    file_.NoteBytes(static_cast<int64_t>(bytes.size()));
    return true;
  }

  void OnDone(const HttpOutcome& outcome) override { file_.OnTransferDone(*this, outcome); }

  // Ends the transfer at its next bytes. Cancelling it is not possible in a call from the HttpClient.
  void MakeStale() { is_stale_ = true; }

  const HttpHead& head() const { return head_; }
  const std::string& url() const { return url_; }
  ByteRange range() const { return range_; }
  ByteRange remaining() const { return {position_, range_.end}; }
  bool is_accepted() const { return is_accepted_; }
  bool is_complete() const { return is_accepted_ && position_ == range_.end; }
  bool is_stale() const { return is_stale_; }
  const std::string& why() const { return why_; }

 private:
  FileDownload& file_;
  std::string url_;
  ByteRange range_;
  int64_t position_;
  HttpHead head_;
  std::string why_;
  size_t num_ignored_ = 0;
  bool is_accepted_ = false;
  bool is_stale_ = false;
};

FileDownload::FileDownload(const HubFile& file, const DownloadTarget& target, HubClient& hub, PullObserver& observer)
    : file_(file), target_(target), hub_(hub), observer_(observer), lock_(target.locks / (file.etag + ".lock")) {}

FileDownload::~FileDownload() {
  for (const std::unique_ptr<RangeTransfer>& transfer : transfers_) hub_.http().Cancel(transfer.get());
  try {
    SaveState();
  } catch (const std::exception&) {
    // The disk is full, for example. The state on disk is older, but still true.
  }
}

std::string FileDownload::Name() const { return Escape(file_.path); }

int64_t FileDownload::done_bytes() const {
  if (is_done_) return file_.size;
  return partial_ ? partial_->ranges().total() : 0;
}

void FileDownload::FailSize(const std::string& size) const {
  throw ModelError("model " + target_.repo_id + ": cannot download " + Name() +
                   ": the server's file has another size (" + size + " bytes, not " + std::to_string(file_.size) + ")");
}

void FileDownload::NoteBytes(int64_t num_bytes) {
  received_bytes_ += num_bytes;
  bytes_since_failure_ += num_bytes;
  // Without ranges, the next attempt starts at the beginning and loses them.
  if (bytes_since_failure_ >= kProgressBytes && !whole_only_) retry_.NoteProgress();
}

bool FileDownload::TakeLock(Clock::time_point now) {
  if (has_lock_) return true;
  if (now < next_lock_attempt_) return false;
  next_lock_attempt_ = now + kLockInterval;
  has_lock_ = lock_.TryLock();
  // Another process may have finished the download since this one planned it.
  const std::filesystem::path link = target_.snapshot / file_.path;
  const bool has_blob = RegularFileSize(target_.blobs / file_.etag) == file_.size;
  if (has_blob || RegularFileSize(link) == file_.size) {
    if (has_blob) PutIntoSnapshot(target_.blobs / file_.etag, link, false);
    lock_.Unlock();
    is_done_ = true;
    return false;
  }
  if (!has_lock_) CheckHolder(now);
  return has_lock_;
}

void FileDownload::CheckHolder(Clock::time_point now) {
  const std::string lock_path = Escape((target_.locks / (file_.etag + ".lock")).string());
  if (!has_noted_holder_) {
    observer_.OnNote("waiting for " + lock_.HolderText() + ", which downloads " + Name() + " too");
    has_noted_holder_ = true;
    holder_active_at_ = now;
  }
  const int64_t activity = DownloadActivity(target_.blobs, file_.etag);
  if (activity != holder_activity_) {
    holder_activity_ = activity;
    holder_active_at_ = now;
  }
  if (now - holder_active_at_ < kMaxHolderSilence) return;
  throw ResourceError("model " + target_.repo_id + ": cannot download " + Name() + ": " + lock_.HolderText() +
                      " holds the lock and has stored nothing for 10 minutes; if it no longer runs, remove " +
                      lock_path);
}

std::optional<ByteRange> FileDownload::NextPiece() const {
  ByteRanges taken = partial_->ranges();
  for (const std::unique_ptr<RangeTransfer>& transfer : transfers_) {
    if (!transfer->is_stale()) taken.Add(transfer->remaining());
  }
  std::optional<ByteRange> gap = taken.FirstGap(file_.size);
  if (!gap || whole_only_) return gap;
  const int64_t piece = std::clamp(file_.size / kPiecesPerFile, kMinPieceBytes, kMaxPieceBytes);
  // Pieces end at multiples of their size, so that an interruption leaves few ranges.
  gap->end = std::min(gap->end, (gap->begin / piece + 1) * piece);
  return gap;
}

void FileDownload::Step(Clock::time_point now, int& num_slots) {
  if (is_done_ || !TakeLock(now)) return;
  if (!partial_) {
    partial_ = std::make_unique<PartialBlob>(target_.blobs, file_.etag, file_.size, lock_.is_real());
    hash_ = std::make_unique<BlobHash>(file_.etag, file_.size);
  }
  if (now < retry_.retry_at()) return;
  while (num_slots > 0) {
    // The first transfer learns where the ranges are.
    if (data_url_.empty() && !transfers_.empty()) return;
    if (whole_only_ && !transfers_.empty()) return;
    const std::optional<ByteRange> piece = NextPiece();
    if (!piece) return;
    StartTransfer(*piece);
    --num_slots;
  }
}

void FileDownload::StartTransfer(ByteRange range) {
  HttpRequest request;
  request.url = data_url_.empty() ? hub_.FileUrl(target_.repo_id, target_.commit, file_.path) : data_url_;
  request.headers = hub_.HeadersFor(request.url);
  request.idle_timeout = hub_.download_timeout();
  if (range != ByteRange{0, file_.size}) {
    request.begin = range.begin;
    request.end = range.end;
  }
  auto transfer = std::make_unique<RangeTransfer>(*this, request.url, range);
  transfers_.reserve(transfers_.size() + 1);
  hub_.http().Start(request, transfer.get());
  transfers_.push_back(std::move(transfer));
}

void FileDownload::OnTransferDone(RangeTransfer& transfer, const HttpOutcome& outcome) {
  const auto found =
      std::find_if(transfers_.begin(), transfers_.end(),
                   [&](const std::unique_ptr<RangeTransfer>& other) { return other.get() == &transfer; });
  const std::unique_ptr<RangeTransfer> done = std::move(*found);
  transfers_.erase(found);
  if (done->is_stale() || done->is_complete()) return;
  const HttpHead& head = done->head();
  if (!done->why().empty()) {
    OnFailure(nullptr, done->why(), true);
  } else if (done->is_accepted() || head.status() == 0) {
    if (whole_only_) Restart();  // the server cannot continue in the middle
    OnFailure(nullptr, outcome.error.empty() ? "the connection was closed early" : outcome.error, outcome.is_temporary);
  } else if (head.is_redirect()) {
    OnRedirect(head, done->url());
  } else if (head.status() == 416) {
    // The server rejects this range. If its file is shorter, the length of the whole file shows it.
    RestartAt(nullptr);
    OnFailure(nullptr, "the server rejects a range of the file", true);
  } else {
    if (!hub_.IsOnHub(done->url())) data_url_.clear();
    if (head.is_temporary_failure()) {
      OnFailure(&head, "the server answered with HTTP status " + std::to_string(head.status()), true);
    } else if (hub_.IsOnHub(done->url())) {
      ThrowHubError(hub_.Subject(target_.repo_id, target_.commit, file_.path), head);
    } else {
      // The address of the storage expires. The hub gives a new one.
      OnFailure(nullptr, "the storage server answered with HTTP status " + std::to_string(head.status()), true);
    }
  }
}

void FileDownload::OnRedirect(const HttpHead& head, const std::string& url) {
  const std::string location = head.Value("location");
  const std::optional<std::string> next = RedirectTarget(url, location);
  const HubSubject subject = hub_.Subject(target_.repo_id, target_.commit, file_.path);
  if (!next || ++num_redirects_ > kMaxRedirects) {
    ThrowNetworkError(subject, "the server redirects to an invalid address, or too often (" + Escape(location) + ")",
                      false);
  }
  const std::string linked = BareEtag(head.Value("x-linked-etag"));
  if (IsBlobName(linked) && linked != file_.etag) {
    throw ModelError("model " + target_.repo_id + ": cannot download " + Name() +
                         ": the hub names another version of the file (" + linked + ", not " + file_.etag + ")",
                     "the same command asks the hub again");
  }
  data_url_ = *next;
}

void FileDownload::OnFailure(const HttpHead* head, const std::string& why, bool is_temporary) {
  num_redirects_ = 0;
  const Clock::time_point now = Clock::now();
  const Clock::time_point before = retry_.retry_at();
  if (!is_temporary || !retry_.NoteFailure(head, now)) {
    const HubSubject subject = hub_.Subject(target_.repo_id, target_.commit, file_.path);
    if (head != nullptr && head->status() == 429) ThrowHubError(subject, *head);
    ThrowNetworkError(subject, why, is_temporary);
  }
  bytes_since_failure_ = 0;
  if (retry_.retry_at() == before) return;
  const auto wait = std::chrono::ceil<std::chrono::seconds>(retry_.retry_at() - now);
  observer_.OnNote(Name() + ": " + why + "; trying again in " + std::to_string(wait.count()) + " s");
}

void FileDownload::RestartAt(RangeTransfer* whole_file) {
  whole_only_ = true;
  for (const std::unique_ptr<RangeTransfer>& transfer : transfers_) {
    if (transfer.get() != whole_file) transfer->MakeStale();
  }
  Restart();
}

void FileDownload::Restart() {
  partial_->Restart();
  hash_ = std::make_unique<BlobHash>(file_.etag, file_.size);
}

bool FileDownload::HashSome(int64_t max_bytes) {
  if (is_done_ || !partial_) return false;
  std::array<char, size_t{128} << 10> buffer;
  const int64_t end = std::min(partial_->ranges().prefix(), hash_->num_bytes() + max_bytes);
  while (hash_->num_bytes() < end) {
    const int64_t size = std::min<int64_t>(end - hash_->num_bytes(), buffer.size());
    const std::span<char> bytes(buffer.data(), static_cast<size_t>(size));
    partial_->Read(hash_->num_bytes(), bytes);
    hash_->Add({bytes.data(), bytes.size()});
  }
  if (hash_->num_bytes() == file_.size && transfers_.empty()) Finish();
  return !is_done_ && hash_->num_bytes() < partial_->ranges().prefix();
}

void FileDownload::Finish() {
  const std::string hash = hash_->Finish();
  if (hash != file_.etag) {
    const bool was_resumed = partial_->is_resumed();
    if (was_resumed && !has_restarted_) {
      // Part of the file is older than this process. A power failure can have lost some of it.
      has_restarted_ = true;
      observer_.OnNote(Name() + ": the stored part is damaged; downloading the file again");
      Restart();
      return;
    }
    partial_->Discard();
    throw ModelError("model " + target_.repo_id + ": cannot download " + Name() + ": the file has the wrong " +
                         (file_.is_lfs ? "SHA-256" : "SHA-1") + " (" + hash + ", not " + file_.etag + ")",
                     "the bytes were changed on the way or on the server, and were discarded; try again");
  }
  const std::filesystem::path blob = partial_->Publish();
  PutIntoSnapshot(blob, target_.snapshot / file_.path, true);
  lock_.Unlock();
  is_done_ = true;
}

void FileDownload::SaveState() {
  if (partial_) partial_->SaveState();
}

}  // namespace vllm::app
