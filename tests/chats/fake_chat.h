// FakeChat: a conversation in memory without a model, whose answers a test gives. Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/chat/prompt_builder.h"
#include "app/chats/chat_tree.h"

namespace vllm::app {

using Ids = std::vector<int32_t>;

inline std::unique_ptr<PromptRenderer> Renderer(const std::string& text) {
  tokenizer::ChatTemplateSource source;
  source.text = text;
  source.eos_token = "</s>";
  return std::make_unique<PromptRenderer>(std::move(source), std::nullopt);
}

inline bool StartsWith(const Ids& ids, const Ids& prefix) {
  return ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

// A conversation without a model: the test gives the answers.
class FakeChat {
 public:
  FakeChat(const PromptRenderer& renderer, const tokenizer::Tokenizer& tokenizer, int32_t eos, uint64_t digest = 1)
      : renderer_(renderer), builder_(renderer, tokenizer, {eos}, digest), digest_(digest), tree_(nullptr) {}

  void SetSystem(const std::string& text) {
    StoredMessage system;
    system.role = ChatRole::kSystem;
    system.text = text;
    tree_.Add(system);
  }
  BuiltPrompt Build(const std::string& question, int64_t max_tokens = 1000,
                    ContextShift shift = ContextShift::kHalf) const {
    StoredMessage message;
    message.text = question;
    const StoredMessage* next = &message;
    return builder_.Build(tree_.PathTo(tree_.current_id()), tree_.TokenIdsUpTo(tree_.current_id()), {&next, 1},
                          max_tokens, shift);
  }
  // Asks and returns the prompt. Expects that the tree then contains exactly the prompt's ids.
  BuiltPrompt Ask(const std::string& question, int64_t max_tokens = 1000) {
    BuiltPrompt prompt = Build(question, max_tokens);
    if (prompt.token_ids.empty()) return prompt;
    StoredMessage message;
    message.parent = tree_.current_id();
    message.text = question;
    message.ids_begin = prompt.ids_begin;
    message.token_ids.assign(prompt.token_ids.begin() + prompt.ids_begin, prompt.token_ids.end());
    message.context_first = prompt.context_first;
    message.model_digest = digest_;
    message.template_variables = renderer_.variables();
    tree_.Add(message);
    EXPECT_EQ(tree_.TokenIdsUpTo(tree_.current_id()), prompt.token_ids);
    return prompt;
  }
  // `num_thinking_ids` and `thinking` as in StoredMessage.
  void Answer(const Ids& ids, const std::string& text, int64_t num_thinking_ids = 0, const std::string& thinking = "") {
    StoredMessage message;
    message.num_thinking_ids = num_thinking_ids;
    message.thinking = thinking;
    message.parent = tree_.current_id();
    message.role = ChatRole::kAssistant;
    message.text = text;
    message.token_ids = ids;
    message.ids_begin = num_tokens();
    tree_.Add(message);
  }
  Ids ids() const { return tree_.TokenIdsUpTo(tree_.current_id()); }
  int64_t num_tokens() const { return static_cast<int64_t>(ids().size()); }
  ChatTree& tree() { return tree_; }

 private:
  const PromptRenderer& renderer_;
  PromptBuilder builder_;
  uint64_t digest_;
  ChatTree tree_;
};

}  // namespace vllm::app
