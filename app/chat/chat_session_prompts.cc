// The functions of ChatSession that build prompts.
#include <algorithm>
#include <iterator>

#include "app/chat/chat_session.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {

int64_t ChatSession::AnswerReserve() const {
  const int64_t max_model_len = model_.engine->max_model_len();
  return std::max<int64_t>(1, std::min<int64_t>(256, max_model_len / 4));
}

std::optional<BuiltPrompt> ChatSession::BuildPrompt(int64_t parent, const std::string* message) const {
  const int64_t max_model_len = model_.engine->max_model_len();
  std::vector<const StoredMessage*> path = tree_.PathTo(parent);
  // The results of tools at the end are new, even if there is a prompt with them already.
  const auto is_result = [](const StoredMessage* known) { return known->role == ChatRole::kTool; };
  const auto first_result = std::find_if_not(path.rbegin(), path.rend(), is_result).base();
  std::vector<const StoredMessage*> next(first_result, path.end());
  path.erase(first_result, path.end());
  StoredMessage question;
  if (message != nullptr) {
    question.text = *message;
    next.push_back(&question);
  }
  const std::vector<int32_t> path_ids = tree_.TokenIdsUpTo(path.empty() ? 0 : path.back()->id);
  StoredMessage system;
  if (path.empty() && !system_.empty()) {
    system.role = ChatRole::kSystem;
    system.text = system_;
    path.push_back(&system);
  }
  const std::string what = message != nullptr ? "the message" : "the result of the tools";
  try {
    BuiltPrompt prompt = prompt_builder_->Build(path, path_ids, next, max_model_len - AnswerReserve(), context_shift());
    if (!prompt.token_ids.empty()) return prompt;
    const std::string context = "the context of " + std::to_string(max_model_len) + " tokens";
    if (prompt.num_tokens_needed > 0) {
      PrintError(
          what + " was not sent: " + context + " is full (with it " + std::to_string(prompt.num_tokens_needed) +
              " tokens, and " + std::to_string(AnswerReserve()) + " are reserved for the answer)",
          "/new begins a new conversation; /undo takes back turns; /set context-shift half leaves out the oldest "
          "turns; --max-model-len sets the size of the context, up to the model's limit");
    } else {
      const size_t num_tokens = model_.tokenizer->Encode(next.back()->text, /*add_special_tokens=*/false).size();
      PrintError(what + " of " + std::to_string(num_tokens) + " tokens does not fit in " + context +
                     ", which also holds the system message and the answer",
                 "--max-model-len sets the size of the context, up to the model's limit");
    }
  } catch (const tokenizer::ChatTemplateError& error) {
    PrintError(error.what());
  } catch (const tokenizer::EncodingStopped&) {
    TakeInterrupt();
    PrintNote("[interrupted: " + what + " was not sent]");
  }
  return std::nullopt;
}

void ChatSession::PrintPromptNotes(const BuiltPrompt& prompt) {
  if (prompt.num_dropped_turns > 0) {
    // Not a status line: --quiet must not hide that the model no longer sees these turns.
    PrintNote("[the context of " + std::to_string(model_.engine->max_model_len()) + " tokens is full: " +
              (prompt.num_dropped_turns == 1
                   ? "the oldest turn was"
                   : "the oldest " + std::to_string(prompt.num_dropped_turns) + " turns were") +
              " dropped]");
  }
  if (prompt.rewrite == BuiltPrompt::Rewrite::kOtherModel) {
    PrintStatus("[the earlier turns are from another model or chat template; they are read again]");
  } else if (prompt.rewrite == BuiltPrompt::Rewrite::kByTemplate && !warned_about_rewriting_) {
    warned_about_rewriting_ = true;
    PrintStatus(
        "[this chat template rewrites earlier turns, so each message recomputes the conversation from the first "
        "change]");
  }
}

void ChatSession::SetPrompt(const BuiltPrompt& prompt, StoredMessage& message) const {
  // The prompt extends the ids of the last answer. Those of the parent, which may be the result of a tool, can differ
  // from them.
  const std::vector<int32_t> parent_ids = tree_.TokenIdsUpTo(message.parent);
  const auto num_shared =
      std::mismatch(parent_ids.begin(), parent_ids.end(), prompt.token_ids.begin(), prompt.token_ids.end()).first -
      parent_ids.begin();
  message.ids_begin = std::min<int64_t>(prompt.ids_begin, num_shared);
  message.token_ids.assign(prompt.token_ids.begin() + message.ids_begin, prompt.token_ids.end());
  message.context_first = prompt.context_first;
  message.template_variables = model_.renderer->variables();
  message.model = model_.location.short_name();
  message.model_digest = model_digest_;
}

}  // namespace vllm::app
