// FileDownload: downloads one file of a repository into the cache, in ranges over several connections, and checks its
// hash before the blob gets its name. A state machine that Downloader drives: waits for the blob's lock, fetches
// ranges, repeats those that fail, hashes the bytes as soon as they are contiguous, and publishes. Owned by Downloader;
// main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/http/http_client.h"
#include "app/http/retry_policy.h"
#include "app/hub/api/hub_client.h"
#include "app/hub/pull/blob_hash.h"
#include "app/hub/pull/blob_lock.h"
#include "app/hub/pull/partial_blob.h"
#include "app/hub/pull/pull_observer.h"

namespace vllm::app {

// The repository and the places in the cache, for all files of a download.
struct DownloadTarget {
  std::string repo_id;
  std::string commit;
  std::filesystem::path blobs;
  std::filesystem::path locks;
  std::filesystem::path snapshot;
};

class FileDownload {
 public:
  using Clock = RetryPolicy::Clock;

  // Borrows everything. `file` must outlive the object.
  FileDownload(const HubFile& file, const DownloadTarget& target, HubClient& hub, PullObserver& observer);
  // Cancels the transfers and keeps what has arrived for the next attempt.
  ~FileDownload();
  FileDownload(const FileDownload&) = delete;
  FileDownload& operator=(const FileDownload&) = delete;

  // Makes progress that needs no waiting: takes the lock, starts transfers and subtracts them from `num_slots`. Throws
  // ModelError, RequestError or ResourceError if the file cannot be downloaded.
  void Step(Clock::time_point now, int& num_slots);
  // Hashes up to `max_bytes` of the bytes that have arrived, and publishes the file after the last. Returns true if
  // more bytes can be hashed now.
  bool HashSome(int64_t max_bytes);
  void SaveState();

  bool is_done() const { return is_done_; }
  bool is_verifying() const { return partial_ && partial_->is_complete() && !is_done_; }
  int num_transfers() const { return static_cast<int>(transfers_.size()); }
  int64_t done_bytes() const;
  int64_t received_bytes() const { return received_bytes_; }

 private:
  class RangeTransfer;

  bool TakeLock(Clock::time_point now);
  void CheckHolder(Clock::time_point now);
  void NoteBytes(int64_t num_bytes);
  std::optional<ByteRange> NextPiece() const;
  void StartTransfer(ByteRange range);
  void OnTransferDone(RangeTransfer& transfer, const HttpOutcome& outcome);
  void OnRedirect(const HttpHead& head, const std::string& url);
  void OnFailure(const HttpHead* head, const std::string& why, bool is_temporary);
  void RestartAt(RangeTransfer* whole_file);
  void Restart();
  void Finish();
  [[noreturn]] void FailSize(const std::string& size) const;
  std::string Name() const;

  const HubFile& file_;
  const DownloadTarget& target_;
  HubClient& hub_;
  PullObserver& observer_;

  BlobLock lock_;
  bool has_lock_ = false;
  Clock::time_point next_lock_attempt_;
  Clock::time_point holder_active_at_;
  int64_t holder_activity_ = 0;
  bool has_noted_holder_ = false;

  std::unique_ptr<PartialBlob> partial_;
  std::unique_ptr<BlobHash> hash_;
  std::vector<std::unique_ptr<RangeTransfer>> transfers_;
  RetryPolicy retry_;
  int64_t received_bytes_ = 0;
  int64_t bytes_since_failure_ = 0;
  std::string data_url_;  // where the ranges come from; empty: ask the hub
  int num_redirects_ = 0;
  bool whole_only_ = false;  // the server does not send ranges
  bool has_restarted_ = false;
  bool is_done_ = false;
};

}  // namespace vllm::app
