#include "engine/kv_offload/kv_disk_thread.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "engine/threading/block_signals.h"

namespace vllm {
namespace {

// Other processes' blocks are looked for at most this often.
constexpr std::chrono::milliseconds kRefreshInterval{1000};
// The weight of a load in the average time of a block.
constexpr double kNewWeight = 0.3;

}  // namespace

KVDiskThread::KVDiskThread(const KVBlockStore::Options& options)
    : payload_bytes_(static_cast<size_t>(options.payload_bytes)), store_(options) {
  TakeWarningsOfStore();
  const BlockSignals block_signals;
  thread_ = std::thread([this] { ThreadMain(); });
}

KVDiskThread::~KVDiskThread() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    loads_.clear();
    has_task_.NotifyOne();
  }
  thread_.join();
}

bool KVDiskThread::Contains(const BlockHash& hash) {
  if (store_.Contains(hash)) return true;
  const MutexLock lock(mutex_);
  return saving_.contains(hash);
}

void KVDiskThread::Refresh() {
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  if (now < next_refresh_) return;
  next_refresh_ = now + kRefreshInterval;
  must_refresh_ = true;
  has_task_.NotifyOne();
}

bool KVDiskThread::HasRoomToSave() {
  const MutexLock lock(mutex_);
  // A block may be larger than the limit.
  return save_bytes_ == 0 || save_bytes_ + BytesOf(1) <= kMaxSaveBytes;
}

void KVDiskThread::Save(KVDiskBlock block) {
  const auto shared = std::make_shared<const KVDiskBlock>(std::move(block));
  const MutexLock lock(mutex_);
  if (!saving_.emplace(shared->hash, shared).second) return;
  saves_.push_back(shared);
  save_bytes_ += BytesOf(1);
  has_task_.NotifyOne();
}

int64_t KVDiskThread::MaxBlocksToLoad() {
  const MutexLock lock(mutex_);
  if (load_bytes_ == 0) return std::max<int64_t>(1, kMaxLoadBytes / BytesOf(1));
  return std::max<int64_t>(0, (kMaxLoadBytes - load_bytes_) / BytesOf(1));
}

void KVDiskThread::Load(KVDiskLoad load) {
  const MutexLock lock(mutex_);
  load_bytes_ += BytesOf(load.blocks.size());
  num_queued_blocks_ += static_cast<int64_t>(load.blocks.size());
  loads_.push_back(std::move(load));
  has_task_.NotifyOne();
}

std::optional<KVDiskLoad> KVDiskThread::TakeLoad() {
  const MutexLock lock(mutex_);
  if (loaded_.empty()) return std::nullopt;
  KVDiskLoad load = std::move(loaded_.front());
  loaded_.pop_front();
  return load;
}

void KVDiskThread::Released(int64_t num_blocks) {
  const MutexLock lock(mutex_);
  load_bytes_ -= BytesOf(static_cast<size_t>(num_blocks));
}

void KVDiskThread::WaitForLoad(std::chrono::steady_clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (loaded_.empty() && std::chrono::steady_clock::now() < deadline) has_loaded_.WaitUntil(mutex_, deadline);
}

KVDiskThread::LoadCost KVDiskThread::load_cost() {
  const MutexLock lock(mutex_);
  return {time_per_block_, num_queued_blocks_};
}

std::string KVDiskThread::TakeWarning() {
  const MutexLock lock(mutex_);
  if (warnings_.empty()) return {};
  std::string warning = std::move(warnings_.front());
  warnings_.pop_front();
  return warning;
}

void KVDiskThread::ThreadMain() {
  pthread_setname_np(pthread_self(), "kv-disk");
  while (true) {
    bool is_load = false;
    bool is_save = false;
    {
      const MutexLock lock(mutex_);
      while (loads_.empty() && saves_.empty() && !must_refresh_ && !stop_) has_task_.Wait(mutex_);
      is_load = !loads_.empty();
      is_save = !is_load && !saves_.empty();
      if (stop_ && !is_save) return;
      if (!is_load) must_refresh_ = false;
    }
    if (is_load) {
      LoadNext();
    } else {
      RefreshStore();
      if (is_save) SaveNext();
    }
    TakeWarningsOfStore();
  }
}

void KVDiskThread::LoadNext() {
  KVDiskLoad load;
  {
    const MutexLock lock(mutex_);
    if (loads_.empty()) return;  // the destructor has dropped it
    load = std::move(loads_.front());
    loads_.pop_front();
  }
  const auto num_started = static_cast<int64_t>(load.blocks.size());
  const auto start = std::chrono::steady_clock::now();
  size_t num_loaded = 0;
  try {
    for (KVDiskBlock& block : load.blocks) {
      if (!Read(block)) break;
      ++num_loaded;
    }
  } catch (const std::exception&) {
    // Out of memory. The blocks that were read are good.
  }
  load.blocks.erase(load.blocks.begin() + static_cast<std::ptrdiff_t>(num_loaded), load.blocks.end());
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  const MutexLock lock(mutex_);
  if (num_loaded > 0) {
    const std::chrono::duration<double> per_block = time / static_cast<double>(num_loaded);
    time_per_block_ =
        time_per_block_.count() == 0 ? per_block : (1 - kNewWeight) * time_per_block_ + kNewWeight * per_block;
  }
  load_bytes_ -= BytesOf(static_cast<size_t>(num_started) - num_loaded);
  num_queued_blocks_ -= num_started;
  loaded_.push_back(std::move(load));
  has_loaded_.NotifyAll();
}

bool KVDiskThread::Read(KVDiskBlock& block) {
  block.payload = std::make_unique_for_overwrite<std::byte[]>(payload_bytes_);
  std::shared_ptr<const KVDiskBlock> saving;
  {
    const MutexLock lock(mutex_);
    if (const auto it = saving_.find(block.hash); it != saving_.end()) saving = it->second;
  }
  if (saving == nullptr) return store_.Read(block.Key(), {block.payload.get(), payload_bytes_});
  if (!saving->Is(block)) return false;
  std::memcpy(block.payload.get(), saving->payload.get(), payload_bytes_);
  return true;
}

void KVDiskThread::SaveNext() {
  std::shared_ptr<const KVDiskBlock> block;
  {
    const MutexLock lock(mutex_);
    block = std::move(saves_.front());
    saves_.pop_front();
  }
  try {
    store_.Write(block->Key(), {block->payload.get(), payload_bytes_});
  } catch (const std::exception&) {
    // Out of memory. The block is not saved.
  }
  const MutexLock lock(mutex_);
  saving_.erase(block->hash);
  save_bytes_ -= BytesOf(1);
}

void KVDiskThread::RefreshStore() {
  try {
    store_.RefreshAfter(kRefreshInterval);
  } catch (const std::exception&) {
    // Out of memory. Some blocks are not found.
  }
}

void KVDiskThread::TakeWarningsOfStore() {
  std::string warning = store_.TakeWarning();
  if (warning.empty()) return;
  const MutexLock lock(mutex_);
  for (; !warning.empty(); warning = store_.TakeWarning()) warnings_.push_back(std::move(warning));
}

}  // namespace vllm
