#include "app/hub/pull/downloader.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "app/terminal/signals.h"

namespace vllm::app {
namespace {

using Clock = FileDownload::Clock;

// Storage servers limit the rate of one connection; more than eight gain little and are impolite.
constexpr int kMaxConnections = 8;
constexpr size_t kMaxActiveFiles = 8;
constexpr std::chrono::milliseconds kInterval{200};
// Takes about 10 ms, so that the connections do not wait.
constexpr int64_t kHashBytes = int64_t{4} << 20;

class Downloader {
 public:
  Downloader(const std::vector<HubFile>& files, const DownloadTarget& target, HubClient& hub, PullObserver& observer)
      : target_(target), hub_(hub), observer_(observer) {
    for (const HubFile& file : files) {
      waiting_.push_back(&file);
      progress_.total_bytes += file.size;
    }
    progress_.num_files = static_cast<int>(files.size());
    // Small files first: they are what an error of the repository shows soonest.
    std::stable_sort(waiting_.begin(), waiting_.end(), [](const HubFile* a, const HubFile* b) {
      constexpr int64_t kSmallBytes = int64_t{1} << 20;
      return a->size < kSmallBytes && b->size >= kSmallBytes;
    });
  }

  void Run() {
    Clock::time_point next_report = Clock::now();
    while (!waiting_.empty() || !active_.empty()) {
      ThrowIfInterrupted();
      Activate();
      const Clock::time_point now = Clock::now();
      int num_slots = kMaxConnections;
      for (const auto& file : active_) num_slots -= file->num_transfers();
      bool has_bytes_to_hash = false;
      for (const auto& file : active_) {
        file->Step(now, num_slots);
        if (!has_bytes_to_hash) has_bytes_to_hash = file->HashSome(kHashBytes);
      }
      RemoveFinished();
      if (active_.empty()) continue;
      if (now >= next_report) {
        next_report = now + kInterval;
        for (const auto& file : active_) file->SaveState();
        Report();
      }
      hub_.http().Poll(has_bytes_to_hash ? std::chrono::milliseconds(0) : kInterval, SignalFd());
    }
    Report();
  }

 private:
  void Activate() {
    for (size_t i = 0; i < waiting_.size() && active_.size() < kMaxActiveFiles;) {
      // A second file with the same contents finds the blob later.
      if (IsActive(waiting_[i]->etag)) {
        ++i;
        continue;
      }
      active_.push_back(std::make_unique<FileDownload>(*waiting_[i], target_, hub_, observer_));
      active_etags_.push_back(waiting_[i]->etag);
      waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  bool IsActive(const std::string& etag) const {
    return std::find(active_etags_.begin(), active_etags_.end(), etag) != active_etags_.end();
  }

  void RemoveFinished() {
    for (size_t i = active_.size(); i-- > 0;) {
      if (!active_[i]->is_done()) continue;
      finished_bytes_ += active_[i]->done_bytes();
      finished_received_bytes_ += active_[i]->received_bytes();
      ++progress_.num_done_files;
      active_.erase(active_.begin() + static_cast<ptrdiff_t>(i));
      active_etags_.erase(active_etags_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  void Report() {
    progress_.done_bytes = finished_bytes_;
    progress_.received_bytes = finished_received_bytes_;
    for (const auto& file : active_) {
      progress_.done_bytes += file->done_bytes();
      progress_.received_bytes += file->received_bytes();
    }
    progress_.is_verifying =
        !active_.empty() && waiting_.empty() &&
        std::all_of(active_.begin(), active_.end(), [](const auto& file) { return file->is_verifying(); });
    observer_.OnProgress(progress_);
  }

  const DownloadTarget& target_;
  HubClient& hub_;
  PullObserver& observer_;
  std::vector<const HubFile*> waiting_;
  std::vector<std::unique_ptr<FileDownload>> active_;
  std::vector<std::string> active_etags_;  // in the order of active_
  int64_t finished_bytes_ = 0;
  int64_t finished_received_bytes_ = 0;
  PullProgress progress_;
};

}  // namespace

void DownloadFiles(const std::vector<HubFile>& files, const DownloadTarget& target, HubClient& hub,
                   PullObserver& observer) {
  Downloader(files, target, hub, observer).Run();
}

}  // namespace vllm::app
