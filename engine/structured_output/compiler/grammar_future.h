// GrammarFuture: a grammar that GrammarCompiler makes on its thread, or the reason why the constraint is rejected.
// Shared by the compiler, its cache and the requests that wait. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "engine/structured_output/grammar_matcher.h"

namespace vllm {

class GrammarFuture {
 public:
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  // Returns null if the constraint is rejected. REQUIRES: is_done().
  const std::shared_ptr<const CompiledGrammar>& grammar() const { return grammar_; }
  // Returns the text of the RequestError if the constraint is rejected. REQUIRES: is_done().
  const std::string& error() const { return error_; }

  // Sets the result. Called once, by the compiler.
  void Finish(std::shared_ptr<const CompiledGrammar> grammar, std::string error) noexcept {
    grammar_ = std::move(grammar);
    error_ = std::move(error);
    is_done_.store(true, std::memory_order_release);
  }

 private:
  std::shared_ptr<const CompiledGrammar> grammar_;
  std::string error_;
  std::atomic<bool> is_done_{false};
};

using GrammarFuturePtr = std::shared_ptr<const GrammarFuture>;

}  // namespace vllm
