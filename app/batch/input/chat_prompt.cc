#include "app/batch/input/chat_prompt.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/sampling_fields.h"
#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// Joins content parts, which must all be text, with line breaks, as vLLM does for templates that expect a string.
Json ContentText(const Json& content) {
  if (content.is_string() || content.is_null()) return content;
  if (!content.is_array()) throw RowError("invalid_row", "messages: content must be a string or a list of parts");
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.value("text", Json()).is_string()) {
      throw RowError("invalid_row", "messages: each content part must be {\"type\":\"text\",\"text\":STRING}");
    }
    if (&part != &content.front()) text += '\n';
    text += part["text"].get<std::string>();
  }
  return text;
}

}  // namespace

bool IsChatField(const std::string& name) {
  return name == "messages" || name == "tools" || name == "add_generation_prompt" || name == "chat_template_kwargs" ||
         name == "reasoning_effort";
}

std::string ChatPrompt(const Json& body, const std::string& system, const PromptRenderer* renderer) {
  if (renderer == nullptr) {
    throw RowError("invalid_request", "chat template: the model has none; set one with --chat-template");
  }
  const auto given = body.find("messages");
  if (given == body.end() || !given->is_array() || given->empty()) {
    throw RowError("invalid_row", "messages: must be a list with at least one message");
  }
  Json messages = Json::array();
  for (const Json& message : *given) {
    if (!message.is_object() || !message.value("role", Json()).is_string()) {
      throw RowError("invalid_row", "messages: each message must be an object whose role is a string");
    }
    Json copy = message;
    copy["content"] = ContentText(message.value("content", Json()));
    // vLLM's name of the field. Templates read the older one.
    if (message.contains("reasoning") && !message.contains("reasoning_content")) {
      copy["reasoning_content"] = message["reasoning"];
    }
    messages.push_back(std::move(copy));
  }
  if (!system.empty() && messages.front()["role"] != "system") {
    messages.insert(messages.begin(), Json({{"role", "system"}, {"content", system}}));
  }
  if (messages.front()["role"] == "system" && !renderer->takes_system_message()) {
    throw RowError("invalid_request", "chat template: does not support a system message");
  }
  Json context;
  context["messages"] = std::move(messages);
  const bool has_tools = body.contains("tools") && !body["tools"].is_null();
  if (has_tools) {
    if (!body["tools"].is_array()) throw RowError("invalid_row", "tools: must be a list");
    context["tools"] = body["tools"];
  }
  context["add_generation_prompt"] = body.contains("add_generation_prompt")
                                         ? SwitchField("add_generation_prompt", body["add_generation_prompt"])
                                         : true;
  if (body.contains("reasoning_effort") && !body["reasoning_effort"].is_null()) {
    const std::string effort = TextField("reasoning_effort", body["reasoning_effort"]);
    context["reasoning_effort"] = effort;
    if (effort == "none") context["enable_thinking"] = false;
  }
  if (body.contains("chat_template_kwargs") && !body["chat_template_kwargs"].is_null()) {
    if (!body["chat_template_kwargs"].is_object()) {
      throw RowError("invalid_row", "chat_template_kwargs: must be an object");
    }
    for (const auto& [name, value] : body["chat_template_kwargs"].items()) context[name] = value;
  }
  try {
    return renderer->RenderJson(DumpJson(context), has_tools);
  } catch (const tokenizer::ChatTemplateError& error) {
    throw RowError("invalid_request", error.what());
  }
}

}  // namespace vllm::app
