// Random values of the messages between ranks, with every field set.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "engine/distributed/wire.h"

namespace vllm::testing_support {

inline std::string RandomText(std::mt19937& random) {
  std::string text(random() % 12, ' ');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

inline std::vector<int32_t> RandomIds(std::mt19937& random) {
  std::vector<int32_t> ids(random() % 6);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % 1000);
  return ids;
}

inline Logprobs RandomLogprobs(std::mt19937& random, size_t num_positions) {
  Logprobs logprobs;
  if (num_positions == 0) return logprobs;
  logprobs.width = 1 + random() % 3;
  for (size_t i = 0; i < num_positions * logprobs.width; ++i) {
    logprobs.token_ids.push_back(static_cast<int32_t>(random() % 1000));
    logprobs.logprobs.push_back(-static_cast<float>(random() % 1000) / 7);
  }
  for (size_t i = 0; i < num_positions; ++i) logprobs.ranks.push_back(static_cast<int32_t>(random() % 50));
  return logprobs;
}

inline EngineCoreRequest RandomRequest(std::mt19937& random, SteadyTime now) {
  EngineCoreRequest request;
  request.request_id = random();
  request.prompt_token_ids = RandomIds(random);
  request.prior_output_token_ids = RandomIds(random);
  SamplingParams& params = request.sampling_params;
  params.presence_penalty = 0.25 * static_cast<double>(random() % 8);
  params.frequency_penalty = 0.25 * static_cast<double>(random() % 8);
  params.repetition_penalty = 1.5;
  params.temperature = 0.1 * static_cast<double>(random() % 20);
  params.top_p = 0.5;
  params.top_k = static_cast<int64_t>(random() % 50);
  params.min_p = 0.125;
  if (random() % 2 == 0) params.seed = (uint64_t{random()} << 32) | random();
  for (size_t i = random() % 3; i > 0; --i) params.stop.push_back(RandomText(random));
  params.stop_token_ids = RandomIds(random);
  params.ignore_eos = random() % 2 == 0;
  if (random() % 2 == 0) params.max_tokens = static_cast<int64_t>(random() % 500);
  params.min_tokens = static_cast<int64_t>(random() % 9);
  if (random() % 2 == 0) params.logprobs = static_cast<int64_t>(random() % 6) - 1;
  if (random() % 2 == 0) params.prompt_logprobs = static_cast<int64_t>(random() % 5) - 1;
  params.detokenize = random() % 2 == 0;
  params.skip_special_tokens = random() % 2 == 0;
  params.include_stop_str_in_output = random() % 2 == 0;
  params.output_kind = static_cast<RequestOutputKind>(random() % 3);
  params.logit_bias = {{3, 1.5f}, {static_cast<int32_t>(random() % 9), -2.0f}};
  if (random() % 2 == 0) params.allowed_token_ids = RandomIds(random);
  params.bad_words = {RandomText(random)};
  params.skip_reading_prefix_cache = random() % 2 == 0;
  if (random() % 2 == 0) params.thinking_token_budget = 17;
  if (random() % 2 == 0) {
    params.structured_outputs = StructuredOutputsParams{RandomText(random),
                                                        static_cast<StructuredOutputsParams::Kind>(random() % 5),
                                                        {RandomText(random)},
                                                        RandomText(random),
                                                        true,
                                                        false};
  }
  params.use_beam_search = random() % 2 == 0;
  if (params.use_beam_search || random() % 2 == 0) params.beam_width = 1 + static_cast<int64_t>(random() % 64);
  if (random() % 2 == 0) params.length_penalty = 0.5;
  params.bad_words_token_ids = {RandomIds(random), RandomIds(random)};
  if (random() % 2 == 0) params.eos_token_id = 2;
  request.arrival_time = now - std::chrono::milliseconds(random() % 1000);
  request.priority = -static_cast<int64_t>(random() % 10);
  request.cache_salt = RandomText(random);
  request.interactive = random() % 2 == 0;
  request.external_req_id = RandomText(random);
  return request;
}

inline void AddRandomOutput(std::mt19937& random, SteadyTime now, EngineCoreOutputs& outputs) {
  EngineCoreOutput& output = outputs.Add(random());
  output.new_token_ids = RandomIds(random);
  output.new_logprobs = RandomLogprobs(random, output.new_token_ids.size());
  output.prompt_logprobs = RandomLogprobs(random, random() % 3);
  output.finish_reason = static_cast<FinishReason>(random() % kNumFinishReasons);
  if (random() % 2 == 0) output.stop_token_id = 5;
  if (random() % 2 == 0) output.beam_score = -0.25 * static_cast<double>(random() % 50);
  output.cumulative_logprob = -0.5 * static_cast<double>(random() % 50);
  output.error = RandomText(random);
  output.num_cached_tokens = static_cast<int64_t>(random() % 99);
  output.num_preemptions = static_cast<int64_t>(random() % 4);
  output.num_draft_tokens = static_cast<int64_t>(random() % 50);
  output.num_accepted_draft_tokens = static_cast<int64_t>(random() % 50);
  output.scheduled_time = now - std::chrono::microseconds(random() % 100'000);
  if (random() % 2 == 0) output.first_token_time = now - std::chrono::microseconds(random() % 1000);
  output.last_token_time = now;
}

}  // namespace vllm::testing_support
