#include "engine/data_parallel/data_parallel_monitor.h"

#include <algorithm>
#include <new>
#include <utility>

#include "engine/data_parallel/merge_engines.h"

namespace vllm {

DataParallelMonitor::DataParallelMonitor(std::vector<EngineCoreMonitor*> engines) : engines_(std::move(engines)) {
  for (EngineCoreMonitor* engine : engines_) engine->SetOnPublish([this] { OnPublish(); });
}

void DataParallelMonitor::RequestSnapshot() {
  {
    MutexLock lock(mutex_);
    if (num_pending_ > 0) return;
    num_pending_ = engines_.size();
    event_fd_.Reset();
  }
  for (EngineCoreMonitor* engine : engines_) engine->RequestSnapshot();
}

void DataParallelMonitor::OnPublish() {
  MutexLock lock(mutex_);
  if (--num_pending_ > 0) return;
  has_new_ = true;
  event_fd_.Set();
}

std::shared_ptr<const EngineSnapshot> DataParallelMonitor::Latest() {
  MutexLock lock(mutex_);
  // While a snapshot is on its way, some engines may have a newer one than others.
  if (!has_new_ || num_pending_ > 0) return latest_;
  has_new_ = false;
  latest_ = nullptr;
  std::vector<std::shared_ptr<const EngineSnapshot>> snapshots;
  try {
    for (EngineCoreMonitor* engine : engines_) snapshots.push_back(engine->Latest());
    const bool all = std::none_of(snapshots.begin(), snapshots.end(), [](const auto& s) { return s == nullptr; });
    if (all) latest_ = std::make_shared<const EngineSnapshot>(MergeSnapshots(snapshots));
  } catch (const std::bad_alloc&) {
    // As if an engine had had no memory for its snapshot.
  }
  return latest_;
}

void DataParallelMonitor::SetAdmissionPaused(bool paused) {
  for (EngineCoreMonitor* engine : engines_) engine->SetAdmissionPaused(paused);
}

void DataParallelMonitor::AbortRequest(RequestId request_id) {
  for (EngineCoreMonitor* engine : engines_) engine->AbortRequest(request_id);
}

}  // namespace vllm
