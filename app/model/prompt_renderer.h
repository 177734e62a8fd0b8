// PromptRenderer: a chat template with the special tokens of its model and the date it is told. Immutable; any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/jinja/chat_template.h"

namespace vllm {

class PromptRenderer {
 public:
  // `now`: what strftime_now sees; none: the clock. `variables_json`: a JSON object of further template variables, or
  // empty. Throws ChatTemplateError.
  PromptRenderer(ChatTemplateSource source, std::optional<std::string> now, std::string variables_json = "");

  // Throws ChatTemplateError.
  std::string Render(std::span<const ChatMessage> messages, bool add_generation_prompt) const;
  // Any object of template variables, such as {"messages":[...],"tools":[...]}; they win over variables_json.
  // `has_tools` takes the model's template for tool use where it has one.
  std::string RenderJson(std::string_view context_json, bool has_tools) const;

  // Whether a system message reaches the prompt. Some templates refuse one, others leave it out without a word.
  bool takes_system_message() const { return takes_system_message_; }

  const ChatTemplateSource& source() const { return source_; }

 private:
  RenderOptions Options(bool add_generation_prompt) const;

  ChatTemplateSource source_;
  std::optional<std::string> now_;
  std::string variables_json_;
  std::unique_ptr<ChatTemplate> chat_template_;
  std::unique_ptr<ChatTemplate> tool_use_template_;  // null: the same
  bool takes_system_message_;
};

}  // namespace vllm
