#include "app/batch/batch_record.h"

#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/output/result_json.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

void SetName(const RowId& id, Json& json) {
  if (id.custom_id) {
    json["custom_id"] = *id.custom_id;
  } else {
    json["index"] = id.index;
  }
}

Json BytesOf(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return bytes;
}

Json OpenAiToken(const Json& ours) {
  Json token;
  token["token"] = ours["token"];
  token["logprob"] = ours["logprob"];
  token["bytes"] = BytesOf(ours["token"].get<std::string>());
  return token;
}

Json ChatLogprobs(const Logprobs& logprobs, const tokenizer::Tokenizer* tokenizer) {
  Json content = Json::array();
  for (size_t i = 0; i < logprobs.num_positions(); ++i) {
    const Json ours = LogprobJson(logprobs, i, tokenizer);
    Json token = OpenAiToken(ours);
    Json top = Json::array();
    for (const Json& other : ours["top"]) top.push_back(OpenAiToken(other));
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return Json({{"content", std::move(content)}});
}

Json CompletionLogprobs(const Logprobs& logprobs, const tokenizer::Tokenizer* tokenizer) {
  Json tokens = Json::array();
  Json token_logprobs = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  size_t offset = 0;
  for (size_t i = 0; i < logprobs.num_positions(); ++i) {
    const Json ours = LogprobJson(logprobs, i, tokenizer);
    tokens.push_back(ours["token"]);
    token_logprobs.push_back(ours["logprob"]);
    Json top = Json::object();
    for (const Json& other : ours["top"]) top[other["token"].get<std::string>()] = other["logprob"];
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += ours["token"].get_ref<const std::string&>().size();
  }
  Json json;
  json["text_offset"] = std::move(offsets);
  json["token_logprobs"] = std::move(token_logprobs);
  json["tokens"] = std::move(tokens);
  json["top_logprobs"] = std::move(tops);
  return json;
}

Json OpenAiBody(const RecordHead& head, const RequestOutput& output, const tokenizer::Tokenizer* tokenizer) {
  const bool is_chat = head.kind == RowKind::kOpenAiChat;
  Json body;
  body["id"] = (is_chat ? "chatcmpl-" : "cmpl-") + head.id.custom_id.value_or("");
  body["object"] = is_chat ? "chat.completion" : "text_completion";
  body["created"] = 0;  // a timestamp would differ between runs
  body["model"] = head.model;
  Json choices = Json::array();
  size_t num_generated = 0;
  size_t num_reasoning = 0;
  for (const CompletionOutput& completion : output.outputs) {
    const Json ours = CompletionJson(completion, false, tokenizer);
    const std::optional<ReasoningParts> parts = PartsOf(head, output, completion);
    Json choice;
    choice["index"] = completion.index;
    if (is_chat) {
      choice["message"] = Json({{"role", "assistant"}, {"content", completion.text}});
      if (parts) {
        // As in vLLM, content is null if the output ends before the answer.
        choice["message"]["content"] = parts->token_ids.empty() ? Json() : Json(parts->text);
        choice["message"]["reasoning"] = parts->reasoning.empty() ? Json() : Json(parts->reasoning);
        num_reasoning += parts->reasoning_token_ids.size();
      }
    } else {
      choice["text"] = completion.text;
    }
    if (!head.with_logprobs) {
      choice["logprobs"] = nullptr;
    } else {
      choice["logprobs"] =
          is_chat ? ChatLogprobs(completion.logprobs, tokenizer) : CompletionLogprobs(completion.logprobs, tokenizer);
    }
    choice["finish_reason"] = ours["finish_reason"];
    choice["stop_reason"] = ours["stop_reason"];
    choices.push_back(std::move(choice));
    num_generated += completion.token_ids.size();
  }
  body["choices"] = std::move(choices);
  const size_t num_prompt = output.prompt_token_ids.size();
  body["usage"] = Json({{"prompt_tokens", num_prompt},
                        {"completion_tokens", num_generated},
                        {"total_tokens", num_prompt + num_generated}});
  if (head.reasoning_format != nullptr) {
    body["usage"]["completion_tokens_details"] = Json({{"reasoning_tokens", num_reasoning}});
  }
  if (head.with_prompt_logprobs) body["prompt_logprobs"] = PromptLogprobsJson(output, tokenizer);
  return body;
}

}  // namespace

std::optional<ReasoningParts> PartsOf(const RecordHead& head, const RequestOutput& output,
                                      const CompletionOutput& completion) {
  if (head.reasoning_format == nullptr) return std::nullopt;
  return SplitReasoning(head.reasoning_format, output.prompt_token_ids, head.skip_special_tokens, completion.token_ids,
                        completion.text);
}

std::string ResultRecord(const RecordHead& head, const RequestOutput& output, const tokenizer::Tokenizer* tokenizer) {
  Json json;
  if (head.kind != RowKind::kPlain) {
    const std::string custom_id = head.id.custom_id.value_or("");
    json["id"] = "vllm-" + custom_id;
    json["custom_id"] = custom_id;
    json["response"] = Json({{"status_code", 200},
                             {"request_id", "vllm-batch-" + custom_id},
                             {"body", OpenAiBody(head, output, tokenizer)}});
    json["error"] = nullptr;
    return DumpJson(json);
  }
  SetName(head.id, json);
  json["prompt_tokens"] = output.prompt_token_ids.size();
  Json outputs = Json::array();
  for (const CompletionOutput& completion : output.outputs) {
    const std::optional<ReasoningParts> parts = PartsOf(head, output, completion);
    outputs.push_back(CompletionJson(completion, head.with_logprobs, tokenizer, parts ? &*parts : nullptr));
  }
  json["outputs"] = std::move(outputs);
  if (head.with_prompt_logprobs) json["prompt_logprobs"] = PromptLogprobsJson(output, tokenizer);
  return DumpJson(json);
}

std::string ErrorRecord(const RowId& id, std::string_view code, std::string_view message) {
  Json error;
  error["code"] = code;
  error["message"] = message;
  error["line"] = id.line;
  Json json;
  if (id.is_openai) {
    json["id"] = "vllm-" + id.custom_id.value_or(std::to_string(id.index));
    json["custom_id"] = id.custom_id ? Json(*id.custom_id) : Json();
    json["response"] = nullptr;
  } else {
    SetName(id, json);
  }
  json["error"] = std::move(error);
  return DumpJson(json);
}

}  // namespace vllm::app
