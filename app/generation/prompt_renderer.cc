#include "app/generation/prompt_renderer.h"

#include <utility>

namespace vllm {

PromptRenderer::PromptRenderer(ChatTemplateSource source, std::optional<std::string> now)
    : source_(std::move(source)), now_(std::move(now)), chat_template_(ChatTemplate::Parse(source_.text)) {}

RenderOptions PromptRenderer::Options(bool add_generation_prompt) const {
  RenderOptions options;
  options.add_generation_prompt = add_generation_prompt;
  options.bos_token = source_.bos_token;
  options.eos_token = source_.eos_token;
  options.now = now_;
  return options;
}

std::string PromptRenderer::Render(std::span<const ChatMessage> messages, bool add_generation_prompt) const {
  return chat_template_->Render(messages, Options(add_generation_prompt));
}

std::string PromptRenderer::RenderJson(std::string_view context_json) const {
  return chat_template_->RenderJson(context_json, Options(true));
}

}  // namespace vllm
