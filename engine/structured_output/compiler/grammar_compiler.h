// GrammarCompiler: makes the grammars that requests ask for, for one model's vocabulary, on its own thread, so
// that a slow one delays no other request. Equal constraints are compiled once while the cache has them, and invalid
// ones are rejected once. Owned by the InputProcessor or the EngineServer. Any thread may call the members, except
// SetNotify.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "engine/request/structured_outputs_params.h"
#include "engine/structured_output/compiler/grammar_cache.h"
#include "engine/structured_output/compiler/grammar_future.h"
#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/threading/thread_annotations.h"

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

class GrammarCompiler {
 public:
  // `tokenizer` may be null and must outlive this object and the grammars. `max_cache_bytes`: see GrammarCache.
  GrammarCompiler(const tokenizer::Tokenizer* tokenizer, int64_t vocab_size, int64_t max_cache_bytes);
  // Waits for the grammar that is being compiled, and drops the others.
  ~GrammarCompiler();

  // Sets a function that the thread calls after each grammar. REQUIRES: Compile was not called.
  void SetNotify(std::function<void()> notify) { notify_ = std::move(notify); }

  // Returns the future of the grammar, which is done if the cache has it. Else the thread compiles it after those of
  // earlier calls, unless nobody has the future any more when its turn comes. It is rejected with the message of a
  // RequestError if CompileGrammar rejects it, if there is no tokenizer, or if its tokens do not stand for bytes.
  // Throws ResourceError if the thread cannot be started.
  GrammarFuturePtr Compile(const StructuredOutputsParams& params) EXCLUDES(mutex_);
  // Waits until the future is done, or until `deadline`. Returns whether it is done.
  bool WaitUntil(const GrammarFuture& future, std::chrono::steady_clock::time_point deadline) EXCLUDES(mutex_);
  void Wait(const GrammarFuture& future) EXCLUDES(mutex_);

  // Keeps the memory of all grammars within the limit. Call this now and then while texts are matched, because grammars
  // grow. Takes no time if there is nothing to do.
  void Trim() EXCLUDES(mutex_);
  // Returns about how much memory the grammars and their constraints need.
  size_t memory_bytes() const EXCLUDES(mutex_);
  size_t num_cached() const EXCLUDES(mutex_);
  // Returns how many grammars the thread has compiled or rejected.
  int64_t num_compiled() const EXCLUDES(mutex_);

 private:
  // The result of a compilation.
  struct Result {
    std::shared_ptr<const CompiledGrammar> grammar;
    std::string error;
    bool keeps_error = true;  // it depends on the constraint only
  };
  void ThreadMain();
  // Returns the next constraint, or null at the end.
  const GrammarCache::Entry* TakeNext() EXCLUDES(mutex_);
  void Finish(const GrammarCache::Entry* entry, Result result) EXCLUDES(mutex_);
  // Functions of the thread.
  Result Make(const StructuredOutputsParams& params) noexcept;
  std::shared_ptr<const CompiledGrammar> MakeGrammar(const StructuredOutputsParams& params);
  // REQUIRES: trie_ is not null.
  GrammarVocabulary Vocabulary() const;

  const tokenizer::Tokenizer* const tokenizer_;
  const int64_t vocab_size_;
  const size_t max_cache_bytes_;
  std::function<void()> notify_;
  std::shared_ptr<const VocabTrie> trie_;  // the thread's; null: not needed yet
  std::shared_ptr<std::atomic<size_t>> grammar_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  GrammarCache cache_ GUARDED_BY(mutex_);
  std::deque<const GrammarCache::Entry*> queue_ GUARDED_BY(mutex_);  // entries that are not done
  int64_t num_compiled_ GUARDED_BY(mutex_) = 0;
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // started by the first Compile
};

}  // namespace vllm
