#include "app/perplexity/chunk_runner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "app/output/run_until_done.h"
#include "engine/config/errors.h"

namespace vllm::app {

TokenLogprobs ChunkLogprobs::At(int64_t position) const {
  auto row = static_cast<size_t>(position - 1);
  const bool is_last = row >= prompt_.num_positions();
  const Logprobs& logprobs = is_last ? last_ : prompt_;
  if (is_last) row = 0;
  return {std::span(logprobs.token_ids).subspan(row * logprobs.width, logprobs.width),
          std::span(logprobs.logprobs).subspan(row * logprobs.width, logprobs.width)};
}

ChunkRunner::ChunkRunner(LLMEngine& engine, const ChunkPlan& plan, std::span<const int32_t> tokens,
                         int64_t num_logprobs)
    : engine_(engine), plan_(plan), tokens_(tokens), num_logprobs_(num_logprobs) {}

SamplingParams ChunkRunner::Params(int64_t num_logprobs) {
  SamplingParams params;
  params.temperature = 0;
  params.max_tokens = 1;
  params.ignore_eos = true;
  params.detokenize = false;
  params.prompt_logprobs = num_logprobs;
  params.logprobs = num_logprobs;
  // Deltas are not copied into a whole output.
  params.output_kind = RequestOutputKind::kDelta;
  return params;
}

void ChunkRunner::Add(int64_t chunk_index) {
  std::vector<int32_t> chunk = plan_.Chunk(tokens_, chunk_index);
  SamplingParams params = Params(num_logprobs_);
  // A request needs room for one output token. The last token of the chunk is that token, so that a chunk can be as
  // long as the context of the model.
  params.allowed_token_ids = {{chunk.back()}};
  chunk.pop_back();
  engine_.AddRequest(std::to_string(chunk_index), std::move(chunk), params);
}

void ChunkRunner::Run(int64_t begin, int64_t end,
                      const std::function<void(int64_t chunk_index, const ChunkLogprobs&)>& on_chunk,
                      const std::function<void()>& on_step) {
  // Enough for the next step while the outputs of the last one are read.
  const int64_t max_unfinished = 2 * engine_.config().scheduler.max_num_seqs;
  int64_t next = begin;
  RunCallbacks callbacks;
  callbacks.add_requests = [&] {
    while (next < end && engine_.NumUnfinishedRequests() < max_unfinished) Add(next++);
    return next < end;
  };
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) {
    for (const RequestOutput& output : outputs) {
      const bool failed =
          output.rejected || (!output.outputs.empty() && output.outputs.front().finish_reason == FinishReason::kError);
      if (failed) throw RequestError("perplexity: " + output.error);
      // With max_tokens 1, there is one output. An abort, by a user of `vllmcli top`, gives one without a token.
      if (output.outputs.empty() || output.outputs.front().logprobs.empty()) {
        throw RequestError("perplexity: chunk " + output.request_id + " was aborted");
      }
      int64_t chunk_index = 0;
      std::from_chars(output.request_id.data(), output.request_id.data() + output.request_id.size(), chunk_index);
      on_chunk(chunk_index, ChunkLogprobs(output.prompt_logprobs, output.outputs.front().logprobs));
    }
    on_step();
  };
  RunUntilDone(engine_, callbacks);
}

MeanSums MeasurePerplexity(LLMEngine& engine, const ChunkPlan& plan, std::span<const int32_t> tokens,
                           const OnProgress& on_progress) {
  const int64_t num_chunks = plan.NumChunks(static_cast<int64_t>(tokens.size()));
  // Chunks finish in an order that depends on batching. Their sums are added in the order of the text.
  std::vector<MeanSums> chunks(static_cast<size_t>(num_chunks));
  MeanSums so_far;
  int64_t num_done = 0;
  ChunkRunner runner(engine, plan, tokens, /*num_logprobs=*/0);
  runner.Run(
      0, num_chunks,
      [&](int64_t chunk_index, const ChunkLogprobs& logprobs) {
        MeanSums& chunk = chunks[static_cast<size_t>(chunk_index)];
        for (int64_t position = plan.FirstCounted(); position < plan.context; ++position) {
          chunk.Add(-static_cast<double>(logprobs.At(position).logprobs[0]));
        }
        so_far.Merge(chunk);
        ++num_done;
      },
      [&] { on_progress(num_done, so_far); });
  MeanSums total;
  for (const MeanSums& chunk : chunks) total.Merge(chunk);
  return total;
}

double KLDivergence(const TokenLogprobs& reference, std::span<const float> logprobs) {
  double sum = 0;
  for (size_t k = 1; k < reference.token_ids.size(); ++k) {
    const auto p = static_cast<double>(reference.logprobs[k]);
    const double probability = std::exp(p);
    // The limit of p log p is 0, also where both logprobs are -inf.
    if (probability == 0) continue;
    sum += probability * (p - static_cast<double>(logprobs[static_cast<size_t>(reference.token_ids[k])]));
  }
  // Rounding can make the divergence of equal distributions slightly negative.
  return std::max(0.0, sum);
}

ComparisonSums Compare(LLMEngine& engine, LLMEngine& reference, const ChunkPlan& plan, std::span<const int32_t> tokens,
                       const OnProgress& on_progress) {
  const int64_t num_chunks = plan.NumChunks(static_cast<int64_t>(tokens.size()));
  const int64_t first = plan.FirstCounted();
  const auto num_counted = static_cast<size_t>(plan.context - first);
  const auto vocab_size = static_cast<size_t>(engine.config().model.vocab_size);
  std::vector<float> rows(num_counted * vocab_size);  // [num_counted, vocab_size] by token id
  std::vector<int32_t> top_ids(num_counted);
  std::vector<double> nll(num_counted);
  ChunkRunner own_runner(engine, plan, tokens, /*num_logprobs=*/-1);
  ChunkRunner reference_runner(reference, plan, tokens, /*num_logprobs=*/-1);
  ComparisonSums total;
  for (int64_t chunk_index = 0; chunk_index < num_chunks; ++chunk_index) {
    const auto on_step = [&] { on_progress(chunk_index, total.nll); };
    own_runner.Run(
        chunk_index, chunk_index + 1,
        [&](int64_t, const ChunkLogprobs& logprobs) {
          for (size_t i = 0; i < num_counted; ++i) {
            const TokenLogprobs token = logprobs.At(first + static_cast<int64_t>(i));
            float* row = rows.data() + i * vocab_size;
            for (size_t k = 1; k < token.token_ids.size(); ++k) {
              row[static_cast<size_t>(token.token_ids[k])] = token.logprobs[k];
            }
            top_ids[i] = token.token_ids[1];
            nll[i] = -static_cast<double>(token.logprobs[0]);
          }
        },
        on_step);
    ComparisonSums chunk;
    reference_runner.Run(
        chunk_index, chunk_index + 1,
        [&](int64_t, const ChunkLogprobs& logprobs) {
          for (size_t i = 0; i < num_counted; ++i) {
            const TokenLogprobs token = logprobs.At(first + static_cast<int64_t>(i));
            chunk.Add(nll[i], -static_cast<double>(token.logprobs[0]),
                      KLDivergence(token, std::span(rows).subspan(i * vocab_size, vocab_size)),
                      token.token_ids[1] == top_ids[i]);
          }
        },
        on_step);
    total.Merge(chunk);
  }
  on_progress(num_chunks, total.nll);
  return total;
}

}  // namespace vllm::app
