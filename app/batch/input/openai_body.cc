#include "app/batch/input/openai_body.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/batch/input/sampling_fields.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> kIgnored = {
    "user",     "metadata", "store", "service_tier", "stream_options", "safety_identifier", "prompt_cache_key",
    "verbosity"};

void CheckSupported(const std::string& name, bool is_supported) {
  if (!is_supported) throw RowError("invalid_row", name + ": not supported");
}

}  // namespace

bool SetOpenAiField(const std::string& name, const Json& value, const Json& body, BatchRow& row) {
  const bool is_chat = row.kind == RowKind::kOpenAiChat;
  if (name == "model") {
    if (!value.is_null()) row.model = TextField(name, value);
    return true;
  }
  if (name == "max_completion_tokens") {
    if (!value.is_null()) row.params.max_tokens = IntegerField(name, value);
    return true;
  }
  if (name == "logprobs" && is_chat) {
    if (value.is_null() || !SwitchField(name, value)) return true;
    const Json top = body.value("top_logprobs", Json());
    row.params.logprobs = top.is_null() ? 0 : IntegerField("top_logprobs", top);
    return true;
  }
  if (name == "top_logprobs" && is_chat) {
    const Json logprobs = body.value("logprobs", Json());
    if (!value.is_null() && !(logprobs.is_boolean() && logprobs.get<bool>())) {
      throw RowError("invalid_row", "top_logprobs: requires logprobs to be true");
    }
    return true;
  }
  if (name == "stream" || name == "echo") {
    CheckSupported(name, value.is_null() || value == false);
    return true;
  }
  if (name == "best_of") {
    CheckSupported(name, value.is_null() || value == body.value("n", Json(1)));
    return true;
  }
  if (name == "suffix" || name == "functions" || name == "audio" || name == "prediction") {
    CheckSupported(name, value.is_null());
    return true;
  }
  if (name == "modalities") {
    CheckSupported(name, value.is_null() || value == Json::array({"text"}));
    return true;
  }
  return std::find(kIgnored.begin(), kIgnored.end(), name) != kIgnored.end();
}

RowKind OpenAiKind(const Json& row) {
  const Json method = row.value("method", Json("POST"));
  if (method != "POST") throw RowError("invalid_row", "method: must be POST");
  const std::string url = TextField("url", row.value("url", Json()));
  if (url == "/v1/chat/completions") return RowKind::kOpenAiChat;
  if (url == "/v1/completions") return RowKind::kOpenAiCompletion;
  if (url == "/v1/embeddings") return RowKind::kEmbedding;
  if (url == "/v1/rerank" || url == "/v2/rerank" || url == "/rerank") return RowKind::kRerank;
  throw RowError("invalid_row", "url: unsupported (" + url.substr(0, 64) +
                                    "); use /v1/chat/completions, /v1/completions, /v1/embeddings or /v1/rerank");
}

}  // namespace vllm::app
