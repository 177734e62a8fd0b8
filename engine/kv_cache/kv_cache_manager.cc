#include "engine/kv_cache/kv_cache_manager.h"

#include <algorithm>
#include <utility>

#include "kernels/threading/check.h"

namespace vllm {

namespace {

// Between checkpoints of a long prompt, in tokens. The copy of a state then takes little time per token.
constexpr int64_t kMinCheckpointDistance = 512;

// Returns the capacity of the prefix trie: one node per block, as many again for ancestors whose blocks were evicted,
// and the nodes of one more sequence. If all groups have sliding windows, there are up to 16 nodes per block, because a
// sequence then holds blocks for few of its nodes. A request that finds no free node stops publishing.
int64_t MaxPrefixes(const CacheConfig& cache, int64_t max_model_len) {
  int64_t factor = 16;
  for (const int64_t window : cache.group_windows) {
    factor = std::min(factor, window > 0 ? std::max<int64_t>(2, max_model_len / window) : 2);
  }
  return factor * cache.num_blocks + max_model_len / cache.block_size + 1;
}

}  // namespace

KVCacheManager::KVCacheManager(const CacheConfig& cache, int64_t max_model_len, BlockHashFunction hash_function,
                               int64_t max_chunk)
    : max_model_len_(max_model_len),
      hash_function_(hash_function),
      pool_(cache.num_blocks, cache.block_size, cache.enable_prefix_caching, MaxPrefixes(cache, max_model_len)),
      hits_(cache.group_windows.size()) {
  VLLM_CHECK(!cache.group_windows.empty());
  for (const int64_t window : cache.group_windows) {
    groups_.push_back(MakeSingleTypeManager(pool_, static_cast<uint32_t>(groups_.size()), window,
                                            max_chunk > 0 ? max_chunk : max_model_len));
  }
  if (cache.num_state_blocks > 0) {
    states_ =
        std::make_unique<RecurrentStateManager>(pool_, static_cast<uint32_t>(groups_.size()), cache.num_state_blocks);
  }
  scratch_.reserve(static_cast<size_t>(cache.block_size));
}

KVCacheManager::~KVCacheManager() = default;

PrefixKey KVCacheManager::MakeKey(Request& request, int64_t block_index, PrefixNodeId parent) {
  return {.hash = request.BlockHashes(block_index + 1, block_size(), hash_function_).back(),
          .parent = parent,
          .token_ids = request.Tokens(block_index * block_size(), block_size(), scratch_),
          .extra_keys = request.extra_keys(block_index == 0)};
}

ComputedBlocks KVCacheManager::GetComputedBlocks(Request& request) {
  if (!pool_.enable_caching() || !request.reads_prefix_cache()) return {};
  prefix_ids_.clear();
  PrefixNodeId prefix_id = kEmptyPrefix;
  const int64_t max_blocks = (request.num_tokens() - 1) / block_size();
  for (int64_t i = 0; i < max_blocks; ++i) {
    prefix_id = pool_.prefix_trie().Lookup(MakeKey(request, i, prefix_id));
    if (prefix_id == kNoPrefix) break;
    prefix_ids_.push_back(prefix_id);
  }
  // Each group in turn shortens the hit to a length from which the group can continue, until all groups agree. The
  // length never increases and 0 is always valid, so this loop terminates.
  size_t length = states_ != nullptr ? states_->FindLongestCacheHit(prefix_ids_) : prefix_ids_.size();
  size_t num_agreed = 0;
  for (size_t g = 0; num_agreed < groups_.size(); g = (g + 1) % groups_.size()) {
    groups_[g]->FindLongestCacheHit(std::span(prefix_ids_).first(length), hits_[g]);
    num_agreed = hits_[g].size() == length ? num_agreed + 1 : 1;
    length = hits_[g].size();
    if (num_agreed < groups_.size() || states_ == nullptr) continue;
    const size_t state_length = states_->FindLongestCacheHit(std::span(prefix_ids_).first(length));
    if (state_length == length) break;
    length = state_length;
    num_agreed = 0;
  }
  request.num_known_prefix_tokens = static_cast<int64_t>(prefix_ids_.size()) * block_size();
  return {hits_, static_cast<int64_t>(length) * block_size(), length > 0 ? prefix_ids_[length - 1] : kEmptyPrefix,
          prefix_ids_.empty() ? kEmptyPrefix : prefix_ids_.back()};
}

bool KVCacheManager::AllocateSlots(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed,
                                   const Admission& admission) {
  if (admission.full_sequence_must_fit && !FullSequenceFits(request, computed, admission.num_extra_blocks))
    return false;
  return Allocate(request, num_new_tokens, computed);
}

bool KVCacheManager::Allocate(Request& request, int64_t num_new_tokens, const ComputedBlocks& computed) {
  VLLM_CHECK(num_new_tokens > 0);
  const int64_t num_tokens = request.num_computed_tokens + computed.num_tokens + num_new_tokens;
  const int64_t num_slots = std::min(num_tokens, max_model_len_);
  const auto it = tables_.find(request.id());
  Tables* tables = it == tables_.end() ? nullptr : &it->second;
  // Free skipped blocks before allocating new ones, so that fewer cached blocks are evicted. The skipped blocks stay
  // free even if the allocation fails.
  if (tables != nullptr) RemoveSkippedBlocks(request, *tables);
  const int64_t required = NumBlocksToAllocate(tables, num_slots, computed);
  if (required > pool_.num_free_blocks()) return false;

  if (tables == nullptr) {
    tables = &StartTables(request, computed);
    if (states_ != nullptr) {
      const int64_t num_other_blocks = NumBlocksToAllocate(tables, num_slots, {});
      states_->Allocate(request.id(), computed.prefix_id, num_other_blocks, block_copies_);
    }
  }
  if (tables->must_copy_last) CopyLastBlock(*tables);
  const auto num_blocks = static_cast<size_t>(BlocksFor(num_slots));
  for (std::vector<KVCacheBlock*>& blocks : tables->groups) {
    while (blocks.size() < num_blocks) blocks.push_back(pool_.GetNewBlock());
  }
  // A caller may allocate slots beyond num_tokens(). Those tokens are not known yet, so their blocks are not published.
  if (pool_.enable_caching()) CacheBlocks(request, *tables, std::min(num_tokens, request.num_tokens()));
  return true;
}

int64_t KVCacheManager::NumBlocksToAllocate(const Tables* tables, int64_t num_slots,
                                            const ComputedBlocks& computed) const {
  const int64_t held =
      tables != nullptr ? static_cast<int64_t>(tables->groups[0].size()) : computed.num_tokens / block_size();
  const int64_t num_copies = tables != nullptr && tables->must_copy_last ? 1 : 0;
  int64_t sum = (std::max<int64_t>(BlocksFor(num_slots) - held, 0) + num_copies) * static_cast<int64_t>(groups_.size());
  if (tables == nullptr && states_ != nullptr) sum += states_->num_blocks();
  for (const std::vector<KVCacheBlock*>& hit : computed.groups) {
    sum += std::count_if(hit.begin(), hit.end(), [](const KVCacheBlock* b) { return b->ref_cnt == 0; });
  }
  return sum;
}

int64_t KVCacheManager::NumBlocksToReserve(int64_t num_tokens, const ComputedBlocks& computed) const {
  int64_t sum = states_ != nullptr ? states_->num_blocks() : 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    int64_t num_blocks = BlocksFor(num_tokens);
    int64_t num_shared = 0;
    if (!computed.groups.empty()) {
      for (const KVCacheBlock* block : computed.groups[g]) {
        if (block->is_null()) {
          --num_blocks;
        } else {
          num_shared += block->ref_cnt > 0;
        }
      }
    }
    sum += groups_[g]->PeakBlocks(num_blocks) - num_shared;
  }
  return sum;
}

KVCacheManager::Tables& KVCacheManager::StartTables(const Request& request, const ComputedBlocks& computed) {
  const auto [it, inserted] = tables_.try_emplace(request.id());
  VLLM_CHECK(inserted);
  Tables& tables = it->second;
  tables.groups.resize(groups_.size());
  const int64_t max_tokens = request.params().max_tokens.value_or(max_model_len_);
  const int64_t max_len = std::min(max_model_len_, request.num_prompt_tokens() + std::min(max_tokens, max_model_len_));
  int64_t max_blocks = BlocksFor(max_len) + 1;
  for (const auto& group : groups_) {
    if (!group->slides()) max_blocks = std::min(max_blocks, num_blocks());
  }
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<KVCacheBlock*>& blocks = tables.groups[g];
    // Reserve memory for the final size, so that a decode step does not allocate.
    blocks.reserve(static_cast<size_t>(max_blocks));
    if (computed.groups.empty()) continue;
    for (KVCacheBlock* block : computed.groups[g]) {
      if (!block->is_null()) pool_.Touch(block);
      blocks.push_back(block);
    }
  }
  tables.num_cached_blocks = computed.num_tokens / block_size();
  tables.last_prefix_id = computed.prefix_id;
  pool_.prefix_trie().AddRef(tables.last_prefix_id);
  return tables;
}

void KVCacheManager::Fork(const Request& parent, const Request& child, int64_t num_tokens) {
  const Tables& from = tables_.at(parent.id());
  const auto num_blocks = static_cast<size_t>(BlocksFor(num_tokens));
  VLLM_CHECK(num_tokens > 0 && num_blocks <= from.groups[0].size() && !from.must_copy_last && states_ == nullptr);
  const auto [it, inserted] = tables_.try_emplace(child.id());
  VLLM_CHECK(inserted);
  Tables& tables = it->second;
  tables.groups.resize(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    tables.groups[g].reserve(from.groups[g].capacity());
    tables.groups[g].assign(from.groups[g].begin(), from.groups[g].begin() + static_cast<std::ptrdiff_t>(num_blocks));
    for (KVCacheBlock* block : tables.groups[g]) {
      if (!block->is_null()) pool_.Touch(block);
    }
  }
  tables.num_cached_blocks = from.num_cached_blocks;
  tables.last_prefix_id = from.last_prefix_id;
  for (; tables.num_cached_blocks > num_tokens / block_size(); --tables.num_cached_blocks) {
    if (tables.last_prefix_id == kNoPrefix) continue;
    tables.last_prefix_id = pool_.prefix_trie().ParentOf(tables.last_prefix_id);
  }
  pool_.prefix_trie().AddRef(tables.last_prefix_id);
  tables.must_copy_last = num_tokens % block_size() != 0;
}

void KVCacheManager::CopyLastBlock(Tables& tables) {
  for (std::vector<KVCacheBlock*>& blocks : tables.groups) {
    KVCacheBlock* const shared = blocks.back();
    blocks.back() = pool_.GetNewBlock();
    block_copies_.push_back({shared->block_id, blocks.back()->block_id});
    // The copy precedes all writes of the step, so the block may be reused in the same step.
    pool_.FreeBlocks({&shared, 1});
  }
  tables.must_copy_last = false;
}

void KVCacheManager::TakeBlockCopies(std::vector<BlockCopy>& copies) {
  copies.insert(copies.end(), block_copies_.begin(), block_copies_.end());
  block_copies_.clear();
}

void KVCacheManager::RemoveSkippedBlocks(Request& request, Tables& tables) {
  sequence_blocks_.clear();
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::vector<KVCacheBlock*>& blocks = tables.groups[g];
    const int64_t num_skipped = groups_[g]->NumSkippedBlocks(request.num_computed_tokens);
    const size_t end = std::min(static_cast<size_t>(num_skipped), blocks.size());
    size_t begin = end;
    while (begin > 0 && !blocks[begin - 1]->is_null()) --begin;
    if (skip_listener_) {
      for (size_t i = begin; i < end; ++i) {
        if (!blocks[i]->is_cached) continue;
        sequence_blocks_.push_back({static_cast<uint32_t>(g), static_cast<int64_t>(i), blocks[i]->block_id});
      }
    }
    pool_.FreeBlocks(std::span(blocks).subspan(begin, end - begin));
    for (; begin < end; ++begin) blocks[begin] = pool_.null_block();
  }
  if (!sequence_blocks_.empty()) skip_listener_(request, sequence_blocks_);
}

void KVCacheManager::CacheBlocks(Request& request, Tables& tables, int64_t num_tokens) {
  const int64_t num_full_blocks = num_tokens / block_size();
  for (; tables.num_cached_blocks < num_full_blocks; ++tables.num_cached_blocks) {
    if (tables.last_prefix_id == kNoPrefix) return;
    const PrefixNodeId parent = tables.last_prefix_id;
    const auto index = static_cast<size_t>(tables.num_cached_blocks);
    tables.last_prefix_id =
        pool_.prefix_trie().Insert(MakeKey(request, tables.num_cached_blocks, parent), request.id());
    pool_.prefix_trie().Release(parent);
    if (tables.last_prefix_id == kNoPrefix) return;
    for (size_t g = 0; g < groups_.size(); ++g) {
      pool_.CacheFullBlock(tables.groups[g][index], tables.last_prefix_id, static_cast<uint32_t>(g), request.id());
    }
  }
}

void KVCacheManager::ChooseCheckpoints(const Request& request, int64_t begin, int64_t end,
                                       std::vector<int64_t>& positions) const {
  positions.clear();
  const auto choose = [&](int64_t position) {
    position = position / block_size() * block_size();
    if (position > begin && position <= end) positions.push_back(position);
  };
  const int64_t prompt_end = request.num_prompt_tokens() - 1;
  if (begin < prompt_end) {
    // At this distance, the checkpoints take about as much memory as the KV of the tokens.
    const int64_t distance = std::max(kMinCheckpointDistance, states_->num_blocks() * block_size());
    for (int64_t p = (begin / distance + 1) * distance; p <= std::min(end, prompt_end); p += distance) choose(p);
    // Other requests share this much of the prompt.
    choose(request.num_known_prefix_tokens);
    for (const int64_t position : request.wanted_checkpoints) choose(position);
    // The same prompt may come again.
    choose(prompt_end);
  }
  // A later prompt may continue this output, as in a chat.
  if (end > prompt_end) choose(end);
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

PrefixNodeId KVCacheManager::PrefixOf(const Request& request, int64_t position) const {
  const Tables& tables = tables_.at(request.id());
  int64_t depth = tables.num_cached_blocks;
  PrefixNodeId prefix_id = tables.last_prefix_id;
  if (prefix_id == kNoPrefix || depth * block_size() < position) return kNoPrefix;
  for (; depth * block_size() > position; --depth) prefix_id = pool_.prefix_trie().ParentOf(prefix_id);
  return prefix_id;
}

void KVCacheManager::PlanCheckpoints(
    const Request& request, int64_t begin, int64_t end, int64_t num_other_blocks,
    const std::function<void(const RecurrentStateManager::Checkpoint& checkpoint)>& add) {
  if (states_ == nullptr || !pool_.enable_caching()) return;
  ChooseCheckpoints(request, begin, end, checkpoint_positions_);
  for (const int64_t position : checkpoint_positions_) {
    const PrefixNodeId prefix_id = PrefixOf(request, position);
    if (prefix_id == kNoPrefix) continue;
    const bool is_output = position >= request.num_prompt_tokens();
    if (const auto* checkpoint =
            states_->AddCheckpoint(request.id(), position, prefix_id, is_output, num_other_blocks)) {
      add(*checkpoint);
    }
  }
}

void KVCacheManager::PublishComputed(Request& request) {
  const auto it = tables_.find(request.id());
  if (it == tables_.end() || !pool_.enable_caching()) return;
  CacheBlocks(request, it->second, std::min(request.num_computed_tokens, request.num_tokens() - 1));
}

std::span<const SequenceBlock> KVCacheManager::PublishedBlocks(Request& request, int64_t num_tokens) {
  sequence_blocks_.clear();
  const auto it = tables_.find(request.id());
  if (it == tables_.end() || !pool_.enable_caching()) return {};
  const std::vector<std::vector<KVCacheBlock*>>& groups = it->second.groups;
  const int64_t max_blocks = std::min(static_cast<int64_t>(groups[0].size()), num_tokens / block_size());
  PrefixNodeId prefix_id = kEmptyPrefix;
  for (int64_t i = 0; i < max_blocks; ++i) {
    // A lookup does not find the nodes of failed requests, nor what was computed on top of them.
    prefix_id = pool_.prefix_trie().Lookup(MakeKey(request, i, prefix_id));
    if (prefix_id == kNoPrefix) break;
    for (size_t g = 0; g < groups.size(); ++g) {
      const KVCacheBlock* block = groups[g][static_cast<size_t>(i)];
      if (block->is_null() || !block->is_cached || block->prefix_id != prefix_id) continue;
      sequence_blocks_.push_back({static_cast<uint32_t>(g), i, block->block_id});
    }
  }
  return sequence_blocks_;
}

bool KVCacheManager::FullSequenceFits(const Request& request, const ComputedBlocks& computed,
                                      int64_t num_extra_blocks) const {
  const int64_t num_tokens = std::min(request.num_tokens(), max_model_len_);
  return NumBlocksToReserve(num_tokens, computed) + num_extra_blocks <= pool_.num_free_blocks();
}

int64_t KVCacheManager::InsertLoadedBlocks(Request& request, int64_t first_block, std::span<const SequenceBlock> blocks,
                                           const std::function<void(size_t i, int32_t block_id)>& copy) {
  if (!pool_.enable_caching() || blocks.empty()) return 0;
  int64_t num_filled = 0;
  // Hold all blocks and nodes of the prefix, so that none is evicted for a later one.
  std::vector<KVCacheBlock*> held;
  std::vector<PrefixNodeId> held_prefixes;
  PrefixNodeId prefix_id = kEmptyPrefix;
  size_t next = 0;
  bool is_full = false;
  for (int64_t index = 0; index <= blocks.back().index && !is_full; ++index) {
    const PrefixKey key = MakeKey(request, index, prefix_id);
    if (index < first_block) {
      prefix_id = pool_.prefix_trie().Lookup(key);
      if (prefix_id == kNoPrefix) break;
      pool_.prefix_trie().AddRef(prefix_id);
    } else {
      prefix_id = pool_.prefix_trie().Insert(key, request.id());
      if (prefix_id == kNoPrefix) break;
    }
    held_prefixes.push_back(prefix_id);
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (KVCacheBlock* block = pool_.GetCachedBlock(prefix_id, group)) {
        pool_.Touch(block);
        held.push_back(block);
      }
    }
    bool has_filled = false;
    for (; next < blocks.size() && blocks[next].index <= index; ++next) {
      const uint32_t group = blocks[next].group;
      if (blocks[next].index < index || group >= groups_.size()) continue;
      if (pool_.GetCachedBlock(prefix_id, group) != nullptr) continue;
      is_full = pool_.num_free_blocks() == 0;
      if (is_full) break;
      KVCacheBlock* const block = pool_.GetNewBlock();
      copy(next, block->block_id);
      pool_.CacheFullBlock(block, prefix_id, group, request.id());
      held.push_back(block);
      has_filled = true;
    }
    num_filled += has_filled ? 1 : 0;
  }
  pool_.FreeBlocks(held);
  for (const PrefixNodeId id : held_prefixes) pool_.prefix_trie().Release(id);
  return num_filled;
}

void KVCacheManager::Free(const Request& request) {
  const auto it = tables_.find(request.id());
  if (it == tables_.end()) return;
  for (const std::vector<KVCacheBlock*>& blocks : it->second.groups) pool_.FreeBlocks(blocks);
  pool_.prefix_trie().Release(it->second.last_prefix_id);
  tables_.erase(it);
  if (states_ != nullptr) states_->Free(request.id());
}

void KVCacheManager::Unpublish(const Request& request, int64_t num_computed_tokens) {
  const auto it = tables_.find(request.id());
  if (it == tables_.end()) return;
  Tables& tables = it->second;
  while (tables.num_cached_blocks > num_computed_tokens / block_size()) {
    const auto index = static_cast<size_t>(--tables.num_cached_blocks);
    for (const std::vector<KVCacheBlock*>& blocks : tables.groups) {
      if (blocks[index]->is_cached) pool_.Uncache(blocks[index]);
    }
    // A request that stopped publishing does not start again.
    if (tables.last_prefix_id == kNoPrefix) continue;
    const PrefixNodeId parent = pool_.prefix_trie().ParentOf(tables.last_prefix_id);
    pool_.prefix_trie().AddRef(parent);
    pool_.prefix_trie().Release(tables.last_prefix_id);
    tables.last_prefix_id = parent;
  }
}

std::span<KVCacheBlock* const> KVCacheManager::Blocks(RequestId request_id, size_t group) const {
  const auto it = tables_.find(request_id);
  if (it == tables_.end()) return {};
  return it->second.groups[group];
}

void KVCacheManager::RecordPrefixCacheStats(const Request& request, int64_t num_hit_tokens) {
  if (!pool_.enable_caching() || !request.reads_prefix_cache() || request.num_preemptions > 0) return;
  ++stats_.requests;
  stats_.queries += request.num_tokens();
  stats_.hits += num_hit_tokens;
}

std::string KVCacheManager::CheckIntegrity() const {
  std::string error = pool_.CheckIntegrity();
  if (!error.empty()) return error;
  std::vector<int32_t> block_refs(static_cast<size_t>(pool_.num_blocks()) + 1);
  std::vector<int64_t> prefix_refs(static_cast<size_t>(pool_.prefix_trie().capacity()) + 1);
  for (const auto& [id, tables] : tables_) {
    const std::string name = "request " + std::to_string(id) + ": ";
    for (size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<KVCacheBlock*>& blocks = tables.groups[g];
      if (blocks.size() != tables.groups[0].size()) return name + "tables of different lengths";
      for (size_t i = 0; i < blocks.size(); ++i) {
        ++block_refs[static_cast<size_t>(blocks[i]->block_id)];
        if (!blocks[i]->is_null()) continue;
        if (!groups_[g]->slides()) return name + "null block in a full-attention group";
        if (i > 0 && !blocks[i - 1]->is_null()) return name + "null block after a block that is not null";
      }
    }
    if (tables.last_prefix_id != kNoPrefix) ++prefix_refs[tables.last_prefix_id];
    if (states_ != nullptr && !states_->HasState(id)) return name + "no recurrent state";
  }
  if (states_ != nullptr) states_->CountReferences(block_refs, prefix_refs);
  block_refs[0] = 1;
  for (int32_t id = 0; id <= pool_.num_blocks(); ++id) {
    const KVCacheBlock& block = pool_.block(id);
    if (block.ref_cnt != block_refs[static_cast<size_t>(id)]) {
      return "block " + std::to_string(id) + ": reference count differs from the number of tables that contain it";
    }
    if (block.is_cached) ++prefix_refs[block.prefix_id];
  }
  return pool_.prefix_trie().CheckIntegrity(prefix_refs);
}

}  // namespace vllm
