#include "engine/structured_output/compiler/grammar_compiler.h"

#include <pthread.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/continuation_tokens.h"
#include "engine/threading/block_signals.h"
#include "tokenizer/token_bytes.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

GrammarCompiler::GrammarCompiler(const tokenizer::Tokenizer* tokenizer, int64_t vocab_size, int64_t max_cache_bytes)
    : tokenizer_(tokenizer),
      vocab_size_(vocab_size),
      max_cache_bytes_(static_cast<size_t>(max_cache_bytes)),
      cache_(max_cache_bytes_) {
  MutexLock lock(mutex_);
  grammar_bytes_ = cache_.grammar_bytes();
}

GrammarCompiler::~GrammarCompiler() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

GrammarFuturePtr GrammarCompiler::Compile(const StructuredOutputsParams& params) {
  MutexLock lock(mutex_);
  if (const GrammarCache::Entry* cached = cache_.Find(params)) return cached->future;
  if (!thread_.joinable()) {
    BlockSignals block_signals;
    try {
      thread_ = std::thread([this] { ThreadMain(); });
    } catch (const std::system_error& error) {
      throw ResourceError(std::string("cannot start the thread that compiles grammars: ") + error.what());
    }
  }
  const GrammarCache::Entry* entry = cache_.Add(params);
  try {
    queue_.push_back(entry);
  } catch (...) {
    cache_.Remove(entry);
    throw;
  }
  changed_.NotifyAll();
  return entry->future;
}

bool GrammarCompiler::WaitUntil(const GrammarFuture& future, std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(mutex_);
  while (!future.is_done() && std::chrono::steady_clock::now() < deadline) changed_.WaitUntil(mutex_, deadline);
  return future.is_done();
}

void GrammarCompiler::Wait(const GrammarFuture& future) {
  MutexLock lock(mutex_);
  while (!future.is_done()) changed_.Wait(mutex_);
}

void GrammarCompiler::Trim() {
  if (grammar_bytes_->load(std::memory_order_relaxed) <= max_cache_bytes_) return;
  MutexLock lock(mutex_);
  cache_.TrimIfGrown();
}

size_t GrammarCompiler::memory_bytes() const {
  MutexLock lock(mutex_);
  return cache_.memory_bytes();
}

size_t GrammarCompiler::num_cached() const {
  MutexLock lock(mutex_);
  return cache_.num_entries();
}

int64_t GrammarCompiler::num_compiled() const {
  MutexLock lock(mutex_);
  return num_compiled_;
}

void GrammarCompiler::ThreadMain() {
  pthread_setname_np(pthread_self(), "grammars");
  while (const GrammarCache::Entry* entry = TakeNext()) {
    Finish(entry, Make(entry->params));
    if (notify_) notify_();
  }
}

const GrammarCache::Entry* GrammarCompiler::TakeNext() {
  MutexLock lock(mutex_);
  while (true) {
    while (queue_.empty() && !is_stopping_) changed_.Wait(mutex_);
    if (is_stopping_) return nullptr;
    const GrammarCache::Entry* entry = queue_.front();
    queue_.pop_front();
    if (entry->future.use_count() > 1) return entry;
    cache_.Remove(entry);  // all requests that waited for it were aborted
  }
}

void GrammarCompiler::Finish(const GrammarCache::Entry* entry, Result result) {
  MutexLock lock(mutex_);
  ++num_compiled_;
  const bool keeps_entry = result.grammar != nullptr || result.keeps_error;
  entry->future->Finish(std::move(result.grammar), std::move(result.error));
  if (!keeps_entry) cache_.Remove(entry);
  cache_.Trim();
  changed_.NotifyAll();
}

GrammarCompiler::Result GrammarCompiler::Make(const StructuredOutputsParams& params) noexcept {
  Result result;
  try {
    try {
      result.grammar = MakeGrammar(params);
    } catch (const RequestError& error) {
      result.error = error.what();
    } catch (const GrammarLimitError& error) {
      result.error = std::string("structured_outputs: ") + error.what();
    }
  } catch (const std::exception&) {
    // Memory has run out. Only this request fails. Others may finish and free some.
    result.error = kOutOfMemory;
    result.keeps_error = false;
  }
  return result;
}

GrammarVocabulary GrammarCompiler::Vocabulary() const {
  GrammarVocabulary vocabulary;
  vocabulary.find = [this](std::string_view text) { return tokenizer_->TokenToId(text); };
  vocabulary.bytes = [this](int32_t id) -> std::optional<std::string> {
    if (id < 0 || id >= vocab_size_) return std::nullopt;
    return std::string(trie_->BytesOf(id));
  };
  return vocabulary;
}

std::shared_ptr<const CompiledGrammar> GrammarCompiler::MakeGrammar(const StructuredOutputsParams& params) {
  if (tokenizer_ == nullptr) throw RequestError("structured_outputs: needs a tokenizer (none is loaded)");
  if (trie_ == nullptr) {
    std::optional<std::vector<std::string>> bytes = tokenizer::TokenBytes(*tokenizer_);
    if (!bytes) {
      throw RequestError(
          "structured_outputs: not supported with this tokenizer, whose tokens are not pieces of text (" +
          std::string(tokenizer_->Kind()) + ")");
    }
    trie_ = std::make_shared<const VocabTrie>(std::move(*bytes), vocab_size_);
  }
  auto compiled = std::make_shared<const CompiledGrammar>(
      CompileGrammar(params, Vocabulary()), trie_, [tokenizer = tokenizer_, trie = trie_](std::string_view text) {
        return ContinuationTokens(*tokenizer, *trie, text);
      });
  compiled->automaton.CountMemory(grammar_bytes_);
  // The engine thread would otherwise compute the first mask.
  GrammarAutomaton::Position start;
  try {
    compiled->automaton.AllowedTokens(start);
  } catch (const GrammarLimitError&) {
    // The request fails when it needs the mask.
  }
  return compiled;
}

}  // namespace vllm
