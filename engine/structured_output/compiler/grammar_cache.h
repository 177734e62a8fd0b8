// GrammarCache: the grammars of a process by their constraints, with a limit for their memory. Grammars that no request
// uses are dropped first, the least recently used first. If that is not enough, grammars in use discard their states,
// which they make again when a text needs them, so the limit changes no result. Owned by GrammarCompiler, whose lock
// protects it.
//
// Invariant 1: an entry whose future is not done stays. Invariant 2: a grammar that a request uses stays, so two
// requests with equal constraints share one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>

#include "engine/request/structured_outputs_params.h"
#include "engine/structured_output/compiler/grammar_future.h"

namespace vllm {

class GrammarCache {
 public:
  struct Entry {
    StructuredOutputsParams params;
    std::shared_ptr<GrammarFuture> future;
    size_t source_bytes = 0;
  };

  explicit GrammarCache(size_t max_bytes) : max_bytes_(max_bytes), trim_at_(max_bytes) {}

  // Returns the entry of an equal constraint and marks it as used last, or returns null. Pointers stay valid until the
  // entry is removed.
  const Entry* Find(const StructuredOutputsParams& params);
  // REQUIRES: Find(params) is null.
  const Entry* Add(const StructuredOutputsParams& params);
  // Removes an entry of this cache.
  void Remove(const Entry* entry);
  // Reduces the memory if it is more than the limit.
  void Trim();
  // Does the same if the memory has grown since grammars in use have discarded their states. Takes no time otherwise.
  void TrimIfGrown() {
    if (memory_bytes() > trim_at_) Trim();
  }

  // The memory of all grammars that are alive, which each of them counts itself.
  const std::shared_ptr<std::atomic<size_t>>& grammar_bytes() const { return grammar_bytes_; }
  // Returns about how much memory the grammars and their constraints need.
  size_t memory_bytes() const { return source_bytes_ + grammar_bytes_->load(std::memory_order_relaxed); }
  size_t num_entries() const { return entries_.size(); }

 private:
  struct Hash {
    size_t operator()(const StructuredOutputsParams* params) const;
  };
  struct Equal {
    bool operator()(const StructuredOutputsParams* a, const StructuredOutputsParams* b) const { return *a == *b; }
  };
  static bool IsInUse(const Entry& entry);

  const size_t max_bytes_;
  // Grammars in use keep their states up to this size, because their rest may need more than the limit: discarding the
  // states after every token would not help.
  size_t trim_at_;
  std::list<Entry> entries_;  // last used first
  std::unordered_map<const StructuredOutputsParams*, std::list<Entry>::iterator, Hash, Equal> index_;
  size_t source_bytes_ = 0;
  const std::shared_ptr<std::atomic<size_t>> grammar_bytes_ = std::make_shared<std::atomic<size_t>>(0);
};

}  // namespace vllm
