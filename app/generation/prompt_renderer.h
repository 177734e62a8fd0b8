// PromptRenderer: a chat template with the special tokens of its model and the date it is told. Immutable; any thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/chat_template/chat_template.h"

namespace vllm {

class PromptRenderer {
 public:
  // `now`: what strftime_now sees; none: the clock. Throws ChatTemplateError.
  PromptRenderer(ChatTemplateSource source, std::optional<std::string> now);

  // Throws ChatTemplateError.
  std::string Render(std::span<const ChatMessage> messages, bool add_generation_prompt) const;
  // Any object of template variables, such as {"messages":[...],"tools":[...]}.
  std::string RenderJson(std::string_view context_json) const;

  const ChatTemplateSource& source() const { return source_; }

 private:
  RenderOptions Options(bool add_generation_prompt) const;

  ChatTemplateSource source_;
  std::optional<std::string> now_;
  std::unique_ptr<ChatTemplate> chat_template_;
};

}  // namespace vllm
