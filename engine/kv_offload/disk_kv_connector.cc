#include "engine/kv_offload/disk_kv_connector.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

#include "engine/kv_cache/kv_cache_demand.h"
#include "engine/trace/sip_hash.h"
#include "kernels/isa.h"

namespace vllm {
namespace {

// Increase this when the contents of payloads or keys change.
constexpr int kPayloadVersion = 2;
// The key of the second digest. SipHash has another structure than XXH3, of which the hashes of blocks are made.
constexpr SipKey kDigestKey{0x766c6c6d636c6931, 0x6b762d6469736b31};
// Steps with fewer tokens say little about the time per token of a prompt, because the weights are read once per step.
constexpr int64_t kMinStepTokens = 64;
constexpr double kNewWeight = 0.3;
// Each refusal to load makes the estimate of loading smaller, so that a slow load does not end loading for good.
constexpr double kPatienceFactor = 0.9;

std::string Identity(const VllmConfig& config, const Executor& executor) {
  std::string identity = config.kv_disk_cache.model_identity;
  const auto add = [&](std::string_view name, const std::string& value) {
    identity += '\n';
    identity += name;
    identity += '=';
    identity += value;
  };
  add("payload", std::to_string(kPayloadVersion));
  add("kv_dtype", std::string(kernels::ToString(config.KVCacheDType())));
  add("block_size", std::to_string(config.cache.block_size));
  add("block_bytes", std::to_string(executor.PageSizeBytes()));
  add("tensor_parallel_size", std::to_string(config.parallel.tensor_parallel_size));
  add("isa", std::string(kernels::ToString(config.isa.value_or(kernels::BestIsa()))));
  std::string windows;
  for (const int64_t window : executor.KVGroupWindows()) windows += std::to_string(window) + ",";
  add("group_windows", windows);
  // The scaling of rotary embeddings may depend on it.
  add("max_model_len", std::to_string(config.model.max_model_len));
  return identity;
}

}  // namespace

DiskKVConnector::DiskKVConnector(const VllmConfig& config, Executor& executor)
    : block_size_(config.cache.block_size),
      group_windows_(executor.KVGroupWindows()),
      loads_only_if_faster_(config.kv_disk_cache.loads_only_if_faster),
      executor_(executor),
      thread_({.directory = config.kv_disk_cache.directory,
               .max_bytes = config.kv_disk_cache.max_bytes,
               .identity = Identity(config, executor),
               .label = config.kv_disk_cache.label,
               .payload_bytes = executor.PageSizeBytes(),
               .block_size = config.cache.block_size}) {}

std::string DiskKVConnector::WhyNot(const VllmConfig& config, const Executor& executor) {
  if (!config.cache.enable_prefix_caching) return "the prefix cache is off";
  if (!executor.CanCopyBlocks()) return "the executor cannot copy KV blocks";
  if (config.linear_backend != LinearBackend::kNative) {
    return "with --linear-backend openblas, KV depends on how tokens are batched";
  }
  if (executor.NumStateBlocks() > 0) return "the model has recurrent state, which is not saved";
  if (executor.PageSizeBytes() > static_cast<int64_t>(kMaxKVPayloadBytes)) return "a KV block is too large";
  return {};
}

void DiskKVConnector::ComputeDigests(Request& request, int64_t num_blocks) {
  digests_.clear();
  uint64_t digest = 0;
  std::string bytes;
  for (int64_t i = 0; i < num_blocks; ++i) {
    const auto tokens = request.Tokens(i * block_size_, block_size_, scratch_);
    const std::string_view extra_keys = request.extra_keys(i == 0);
    bytes.assign(reinterpret_cast<const char*>(&digest), sizeof digest);
    bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
    bytes.append(extra_keys);
    digest = SipHash(kDigestKey, bytes);
    digests_.push_back(digest);
  }
}

BlockHash DiskKVConnector::StoredHash(const BlockHash& hash, size_t group) {
  if (group == 0) return hash;
  return {.lo = MixBits(hash.lo + group * kSplitMixGamma), .hi = hash.hi};
}

KVDiskBlock DiskKVConnector::MakeBlock(Request& request, size_t group, int64_t block_index) {
  const auto hashes = request.BlockHashes(block_index + 1, block_size_, &HashBlockTokens);
  const auto index = static_cast<size_t>(block_index);
  KVDiskBlock block;
  block.hash = StoredHash(hashes[index], group);
  block.parent_hash = index == 0 ? kNoneHash : hashes[index - 1];
  const auto tokens = request.Tokens(block_index * block_size_, block_size_, scratch_);
  block.token_ids.assign(tokens.begin(), tokens.end());
  block.extra_keys.assign(reinterpret_cast<const char*>(&digests_[index]), sizeof(uint64_t));
  if (group_windows_.size() > 1) block.extra_keys += std::to_string(group) + ":";
  block.extra_keys.append(request.extra_keys(/*first_block=*/true));
  block.group = static_cast<uint32_t>(group);
  block.index = block_index;
  return block;
}

int64_t DiskKVConnector::FirstNeeded(size_t group, int64_t first_block, int64_t end) const {
  return std::max(first_block, NumSkippedBlocks(group_windows_[group], block_size_, end * block_size_));
}

int64_t DiskKVConnector::NumLoadable(int64_t first_block, std::span<const BlockHash> hashes) {
  const auto has = [&](size_t group, int64_t index) {
    return thread_.Contains(StoredHash(hashes[static_cast<size_t>(index - first_block)], group));
  };
  int64_t end = first_block + static_cast<int64_t>(hashes.size());
  for (size_t group = 0; group < group_windows_.size(); ++group) {
    if (group_windows_[group] > 0) continue;
    int64_t index = first_block;
    while (index < end && has(group, index)) ++index;
    end = index;
  }
  // A missing block of a window moves the end before it, for all groups. Each round moves the end, so this terminates.
  for (size_t num_agreed = 0, group = 0; end > first_block && num_agreed < group_windows_.size();
       group = (group + 1) % group_windows_.size()) {
    int64_t index = end;
    const int64_t first = group_windows_[group] > 0 ? FirstNeeded(group, first_block, end) : end;
    while (index > first && has(group, index - 1)) --index;
    num_agreed = index == first ? num_agreed + 1 : 0;
    if (index > first) end = index - 1;
  }
  return end - first_block;
}

KVConnector::StartedLoad DiskKVConnector::StartLoad(Request& request, int64_t first_block, int64_t max_blocks) {
  thread_.Refresh();
  auto hashes = request.BlockHashes(first_block + max_blocks, block_size_, &HashBlockTokens)
                    .subspan(static_cast<size_t>(first_block));
  for (const PendingLoad& load : pending_) {
    if (std::find(load.hashes.begin(), load.hashes.end(), hashes[0]) != load.hashes.end()) {
      return {.load_id = load.load_id, .is_leader = false};
    }
  }
  const int64_t max_payloads = thread_.MaxBlocksToLoad();
  const bool has_full_attention = std::find(group_windows_.begin(), group_windows_.end(), 0) != group_windows_.end();
  if (has_full_attention) hashes = hashes.first(std::min(hashes.size(), static_cast<size_t>(max_payloads)));
  int64_t num_blocks = NumLoadable(first_block, hashes);
  const auto count_payloads = [&] {
    int64_t sum = 0;
    for (size_t group = 0; group < group_windows_.size(); ++group) {
      sum += first_block + num_blocks - FirstNeeded(group, first_block, first_block + num_blocks);
    }
    return sum;
  };
  while (num_blocks > 0 && count_payloads() > max_payloads) {
    // Load fewer. A window may need other blocks then.
    const auto num_groups = static_cast<int64_t>(group_windows_.size());
    const int64_t excess = std::max<int64_t>(1, (count_payloads() - max_payloads) / num_groups);
    num_blocks = NumLoadable(first_block, hashes.first(static_cast<size_t>(std::max<int64_t>(0, num_blocks - excess))));
  }
  if (num_blocks == 0 || !IsWorthLoading(count_payloads(), num_blocks * block_size_)) return {};

  const int64_t end = first_block + num_blocks;
  ComputeDigests(request, end);
  KVDiskLoad load{.load_id = last_load_id_ + 1, .first_block = first_block, .blocks = {}};
  PendingLoad& pending = pending_.emplace_back(PendingLoad{.load_id = load.load_id, .hashes = {}});
  for (int64_t index = first_block; index < end; ++index) {
    pending.hashes.push_back(hashes[static_cast<size_t>(index - first_block)]);
    for (size_t group = 0; group < group_windows_.size(); ++group) {
      if (index >= FirstNeeded(group, first_block, end)) load.blocks.push_back(MakeBlock(request, group, index));
    }
  }
  thread_.Load(std::move(load));
  return {.load_id = ++last_load_id_, .is_leader = true};
}

bool DiskKVConnector::IsWorthLoading(int64_t num_blocks, int64_t num_tokens) {
  const KVDiskThread::LoadCost cost = thread_.load_cost();
  if (!loads_only_if_faster_ || cost.per_block.count() == 0 || time_per_token_.count() == 0) return true;
  const auto load_time = patience_ * cost.per_block * static_cast<double>(num_blocks + cost.num_queued_blocks);
  if (load_time < time_per_token_ * static_cast<double>(num_tokens)) {
    patience_ = 1.0;
    return true;
  }
  patience_ *= kPatienceFactor;
  return false;
}

const KVConnector::FinishedLoad* DiskKVConnector::NextFinishedLoad() {
  if (current_) thread_.Released(static_cast<int64_t>(current_->blocks.size()));
  current_ = thread_.TakeLoad();
  if (!current_) return nullptr;
  std::erase_if(pending_, [this](const PendingLoad& load) { return load.load_id == current_->load_id; });
  finished_.load_id = current_->load_id;
  finished_.first_block = current_->first_block;
  finished_.blocks.clear();
  for (const KVDiskBlock& block : current_->blocks) finished_.blocks.push_back({block.group, block.index});
  return &finished_;
}

void DiskKVConnector::CopyIn(size_t i, int32_t block_id) {
  executor_.CopyBlockIn(block_id, {current_->blocks[i].payload.get(), thread_.payload_bytes()});
}

int64_t DiskKVConnector::Save(Request& request, std::span<const SequenceBlock> blocks) {
  if (blocks.empty()) return 0;
  int64_t num_blocks = 0;
  for (const SequenceBlock& block : blocks) num_blocks = std::max(num_blocks, block.index + 1);
  const auto hashes = request.BlockHashes(num_blocks, block_size_, &HashBlockTokens);
  bool has_digests = false;
  int64_t num_saved = 0;
  for (const SequenceBlock& from : blocks) {
    if (thread_.Contains(StoredHash(hashes[static_cast<size_t>(from.index)], from.group))) continue;
    if (!thread_.HasRoomToSave()) break;
    if (!has_digests) ComputeDigests(request, num_blocks);
    has_digests = true;
    KVDiskBlock block = MakeBlock(request, from.group, from.index);
    block.payload.reset(new (std::nothrow) std::byte[thread_.payload_bytes()]);
    if (block.payload == nullptr) break;
    executor_.CopyBlockOut(from.block_id, {block.payload.get(), thread_.payload_bytes()});
    thread_.Save(std::move(block));
    ++num_saved;
  }
  return num_saved;
}

void DiskKVConnector::WaitForLoad(std::chrono::milliseconds max_time) {
  thread_.WaitForLoad(std::chrono::steady_clock::now() + max_time);
}

void DiskKVConnector::RecordStep(int64_t num_tokens, std::chrono::duration<double> time) {
  if (num_tokens < kMinStepTokens) return;
  const auto per_token = time / static_cast<double>(num_tokens);
  time_per_token_ =
      time_per_token_.count() == 0 ? per_token : (1 - kNewWeight) * time_per_token_ + kNewWeight * per_token;
}

}  // namespace vllm
