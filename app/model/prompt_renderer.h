// PromptRenderer: a chat template with the special tokens of its model, fixed variables and an optional fixed date.
// Immutable; any thread. Owned by LoadedModel or by the command.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/jinja/chat_template.h"

namespace vllm::app {

class PromptRenderer {
 public:
  // `now` is the time that strftime_now formats; nullopt means the current time. `variables_json` is a JSON object of
  // further template variables, or empty. Throws ChatTemplateError.
  PromptRenderer(tokenizer::ChatTemplateSource source, std::optional<std::string> now, std::string variables_json = "");

  // Returns the prompt text. Throws ChatTemplateError.
  std::string Render(std::span<const tokenizer::ChatMessage> messages, bool add_generation_prompt) const;
  // Renders with the template variables in `context_json`, such as {"messages":[...],"tools":[...]}, which override
  // those of variables_json. If `has_tools`, uses the model's template for tool use, if it has one. Throws
  // ChatTemplateError.
  std::string RenderJson(std::string_view context_json, bool has_tools) const;

  // Returns true if a system message reaches the prompt. Some templates reject one, others omit it silently.
  bool takes_system_message() const { return takes_system_message_; }

  const tokenizer::ChatTemplateSource& source() const { return source_; }

 private:
  tokenizer::RenderOptions Options(bool add_generation_prompt) const;

  tokenizer::ChatTemplateSource source_;
  std::optional<std::string> now_;
  std::string variables_json_;
  std::unique_ptr<tokenizer::ChatTemplate> chat_template_;
  std::unique_ptr<tokenizer::ChatTemplate> tool_use_template_;  // null: use chat_template_
  bool takes_system_message_;
};

}  // namespace vllm::app
