#include "engine/structured_output/compiler/grammar_cache.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

namespace vllm {
namespace {

// Of an entry without its texts: the list, the index and the future.
constexpr size_t kEntryBytes = 512;

size_t SourceBytes(const StructuredOutputsParams& params) {
  size_t num_bytes = kEntryBytes + params.text.size() + params.before.size();
  for (const std::string& text : params.choice) num_bytes += text.size() + sizeof(std::string);
  return num_bytes;
}

}  // namespace

size_t GrammarCache::Hash::operator()(const StructuredOutputsParams* params) const {
  const std::hash<std::string> hash_of;
  size_t hash = hash_of(params->text) + static_cast<size_t>(params->kind);
  for (const std::string& text : params->choice) hash = hash * 31 + hash_of(text);
  hash = hash * 31 + hash_of(params->before);
  return hash * 4 + (params->any_order ? 2 : 0) + (params->flexible_whitespace ? 1 : 0);
}

bool GrammarCache::IsInUse(const Entry& entry) {
  // References to a grammar are only copied from others, or under the compiler's lock, so one stays unused.
  return entry.future.use_count() > 1 || !entry.future->is_done() || entry.future->grammar().use_count() > 1;
}

const GrammarCache::Entry* GrammarCache::Find(const StructuredOutputsParams& params) {
  const auto found = index_.find(&params);
  if (found == index_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

const GrammarCache::Entry* GrammarCache::Add(const StructuredOutputsParams& params) {
  entries_.push_front({params, std::make_shared<GrammarFuture>(), SourceBytes(params)});
  try {
    index_.emplace(&entries_.front().params, entries_.begin());
  } catch (...) {
    entries_.pop_front();
    throw;
  }
  source_bytes_ += entries_.front().source_bytes;
  return &entries_.front();
}

void GrammarCache::Remove(const Entry* entry) {
  const auto found = index_.find(&entry->params);
  const auto it = found->second;
  index_.erase(found);
  source_bytes_ -= it->source_bytes;
  entries_.erase(it);
}

void GrammarCache::Trim() {
  if (memory_bytes() <= max_bytes_) {
    trim_at_ = max_bytes_;
    return;
  }
  // Frees more than it must, so that the next grammars do not need another pass.
  const size_t target = max_bytes_ - max_bytes_ / 8;
  for (auto it = entries_.end(); it != entries_.begin() && memory_bytes() > target;) {
    const auto entry = std::prev(it);
    if (IsInUse(*entry)) {
      it = entry;
    } else {
      Remove(&*entry);
    }
  }
  if (memory_bytes() <= trim_at_) return;
  for (auto it = entries_.rbegin(); it != entries_.rend() && memory_bytes() > target; ++it) {
    if (it->future->is_done() && it->future->grammar() != nullptr) it->future->grammar()->automaton.TryDiscardStates();
  }
  trim_at_ = std::max(max_bytes_, memory_bytes() + max_bytes_ / 8);
}

}  // namespace vllm
