#include "app/output/result_json.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity or NaN. Like vLLM, report -9999 as the logprob of a masked token.
double Finite(double logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

Json StopReasonJson(const StopReason& reason) {
  if (const auto* id = std::get_if<int32_t>(&reason)) return *id;
  if (const auto* text = std::get_if<std::string>(&reason)) return *text;
  return nullptr;
}

}  // namespace

std::string TokenText(int32_t token_id, const tokenizer::Tokenizer* tokenizer) {
  if (tokenizer == nullptr) return "";
  const int32_t ids[] = {token_id};
  return tokenizer->Decode(ids, false);
}

Json LogprobJson(const Logprobs& logprobs, size_t position, const tokenizer::Tokenizer* tokenizer) {
  const size_t begin = position * logprobs.width;
  Json json;
  json["token_id"] = logprobs.token_ids[begin];
  json["token"] = TokenText(logprobs.token_ids[begin], tokenizer);
  json["logprob"] = Finite(logprobs.logprobs[begin]);
  json["rank"] = logprobs.ranks[position];
  Json top = Json::array();
  for (size_t i = begin + 1; i < begin + logprobs.width; ++i) {
    if (logprobs.token_ids[i] < 0) continue;
    top.push_back({{"token_id", logprobs.token_ids[i]},
                   {"token", TokenText(logprobs.token_ids[i], tokenizer)},
                   {"logprob", Finite(logprobs.logprobs[i])}});
  }
  json["top"] = std::move(top);
  return json;
}

Json CompletionJson(const CompletionOutput& output, bool with_logprobs, const tokenizer::Tokenizer* tokenizer,
                    const ReasoningParts* parts) {
  Json json;
  json["index"] = output.index;
  json["text"] = parts == nullptr ? output.text : parts->text;
  json["token_ids"] = parts == nullptr ? output.token_ids : parts->token_ids;
  if (parts != nullptr) {
    json["reasoning"] = parts->reasoning.empty() ? Json() : Json(parts->reasoning);
    json["reasoning_token_ids"] = parts->reasoning_token_ids;
  }
  json["finish_reason"] = output.finish_reason == FinishReason::kNone ? Json() : Json(ToString(output.finish_reason));
  json["stop_reason"] = StopReasonJson(output.stop_reason);
  if (output.valid) json["valid"] = *output.valid;
  if (with_logprobs) {
    Json list = Json::array();
    for (size_t i = 0; i < output.logprobs.num_positions(); ++i) {
      list.push_back(LogprobJson(output.logprobs, i, tokenizer));
    }
    json["logprobs"] = std::move(list);
    json["cumulative_logprob"] = Finite(output.cumulative_logprob);
  } else {
    json["logprobs"] = nullptr;
    json["cumulative_logprob"] = output.score ? Json(Finite(output.cumulative_logprob)) : Json();
  }
  if (output.score) json["score"] = Finite(*output.score);
  return json;
}

void AddTokenCounts(const RequestStats& stats, Json& json) {
  json["prompt_tokens"] = stats.num_prompt_tokens;
  json["cached_tokens"] = stats.num_cached_tokens;
  json["draft_tokens"] = stats.metrics.num_draft_tokens;
  json["accepted_draft_tokens"] = stats.metrics.num_accepted_draft_tokens;
}

Json RunJson(const std::string& request_id, const std::string& model, const RequestStats& stats, Json outputs,
             Json sampling) {
  Json json;
  json["id"] = request_id;
  json["model"] = model;
  AddTokenCounts(stats, json);
  json["outputs"] = std::move(outputs);
  json["sampling"] = std::move(sampling);
  json["timings"] = TimingsJson(stats);
  return json;
}

Json PromptLogprobsJson(const RequestOutput& output, const tokenizer::Tokenizer* tokenizer) {
  Json list = Json::array();
  list.push_back(nullptr);
  for (size_t i = 0; i < output.prompt_logprobs.num_positions(); ++i) {
    list.push_back(LogprobJson(output.prompt_logprobs, i, tokenizer));
  }
  return list;
}

}  // namespace vllm::app
