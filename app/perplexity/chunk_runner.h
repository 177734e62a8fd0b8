// ChunkRunner: runs the chunks of a text through an engine and gives the log-probabilities of their tokens to the
// caller. MeasurePerplexity and Compare compute the scores of a whole text from them. Main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "app/perplexity/chunk_plan.h"
#include "app/perplexity/score_sums.h"
#include "engine/frontend/llm_engine.h"

namespace vllm::app {

// The log-probabilities at one position: entry 0 is the token of the text. If the whole vocabulary was requested, all
// tokens follow by descending probability.
struct TokenLogprobs {
  std::span<const int32_t> token_ids;
  std::span<const float> logprobs;  // in nats
};

// The log-probabilities of one chunk. Borrows the output of the engine.
class ChunkLogprobs {
 public:
  ChunkLogprobs(const Logprobs& prompt, const Logprobs& last) : prompt_(prompt), last_(last) {}
  // REQUIRES: 1 <= position < length of the chunk.
  TokenLogprobs At(int64_t position) const;

 private:
  const Logprobs& prompt_;  // of the positions 1 to length - 2
  const Logprobs& last_;    // of the last position
};

// Called by MeasurePerplexity and Compare after each step of an engine, with the number of finished chunks and the sums
// over their tokens, added in the order in which the chunks finished.
using OnProgress = std::function<void(int64_t num_chunks_done, const MeanSums& nll)>;

class ChunkRunner {
 public:
  // `num_logprobs` is 0, or -1 for the whole vocabulary. The engine and the tokens are borrowed.
  ChunkRunner(LLMEngine& engine, const ChunkPlan& plan, std::span<const int32_t> tokens, int64_t num_logprobs);

  // Returns the parameters of the request for a chunk, except for its last token.
  static SamplingParams Params(int64_t num_logprobs);

  // Runs the chunks from `begin` up to but not including `end`, several at a time if the engine has room for them.
  // Calls `on_chunk` for each as it finishes, in any order, and `on_step` after each step. Throws RequestError if the
  // engine rejects a chunk or fails, and the errors of RunUntilDone.
  void Run(int64_t begin, int64_t end, const std::function<void(int64_t chunk_index, const ChunkLogprobs&)>& on_chunk,
           const std::function<void()>& on_step);

 private:
  void Add(int64_t chunk_index);

  LLMEngine& engine_;
  ChunkPlan plan_;
  std::span<const int32_t> tokens_;
  int64_t num_logprobs_;
};

// Returns the sums of the negative log-likelihoods of the tokens that count. Many chunks run at a time. The result does
// not depend on how they are batched. Throws as ChunkRunner::Run.
MeanSums MeasurePerplexity(LLMEngine& engine, const ChunkPlan& plan, std::span<const int32_t> tokens,
                           const OnProgress& on_progress);

// Compares the distributions of two engines with the same vocabulary for the tokens that count. Runs one chunk at a
// time, first in one engine and then in the other. Holds vocab_size floats for each token of a chunk that counts, and
// the output of both engines for one chunk (EstimateOutputMemory). REQUIRES: max_output_memory_bytes of the engines
// allows the request of a chunk. Throws as ChunkRunner::Run.
ComparisonSums Compare(LLMEngine& engine, LLMEngine& reference, const ChunkPlan& plan, std::span<const int32_t> tokens,
                       const OnProgress& on_progress);

// Returns KL(P || Q) in nats. `reference` has all tokens of the vocabulary after entry 0, and `logprobs` has the
// log-probabilities of Q by token id. [vocab_size]
double KLDivergence(const TokenLogprobs& reference, std::span<const float> logprobs);

}  // namespace vllm::app
