#include "app/chat/prompt_builder.h"

#include <algorithm>
#include <random>
#include <utility>

#include "app/chat/tool_prompt.h"
#include "engine/reasoning/text_markers.h"

namespace vllm::app {
namespace {

bool IsQuestion(const StoredMessage* message) { return message->role == ChatRole::kUser; }

// Returns true if the token ids of the message are those of a prompt.
bool HasPrompt(const StoredMessage* message) {
  return IsQuestion(message) || (message->role == ChatRole::kTool && !message->token_ids.empty());
}

// Returns the last message with a prompt, or null.
const StoredMessage* LastPrompt(std::span<const StoredMessage* const> path) {
  const auto last = std::find_if(path.rbegin(), path.rend(), HasPrompt);
  return last == path.rend() ? nullptr : *last;
}

// Returns the indices of the questions in path[first, ...).
std::vector<size_t> Questions(std::span<const StoredMessage* const> path, size_t first) {
  std::vector<size_t> indices;
  for (size_t i = first; i < path.size(); ++i) {
    if (IsQuestion(path[i])) indices.push_back(i);
  }
  return indices;
}

// Returns true if the answer has a thought that was not cut.
bool HasWholeThought(const StoredMessage& answer) {
  return answer.num_thinking_ids > 0 && answer.num_thinking_ids < static_cast<int64_t>(answer.token_ids.size());
}

// Returns the index of the oldest question that was in the prompt of the last one.
size_t FirstInContext(std::span<const StoredMessage* const> path) {
  const std::vector<size_t> questions = Questions(path, 0);
  if (questions.empty()) return path.size();
  const StoredMessage* last = LastPrompt(path);
  if (last->context_first == 0) return questions.back();
  for (const size_t index : questions) {
    if (path[index]->id == last->context_first) return index;
  }
  return questions.front();
}

tokenizer::ChatMessage MessageOf(const StoredMessage& message) {
  return {std::string(RoleName(message.role)),
          message.text,
          HasWholeThought(message) ? message.thinking : "",
          message.tool_calls,
          message.tool_call_id,
          message.tool_name};
}

}  // namespace

int64_t NumDroppedTurns(std::span<const StoredMessage* const> path) {
  if (Questions(path, 0).empty()) return 0;
  const size_t first = FirstInContext(path);
  return static_cast<int64_t>(Questions(path.first(first), 0).size());
}

PromptBuilder::PromptBuilder(const PromptRenderer& renderer, const tokenizer::Tokenizer& tokenizer,
                             std::vector<int32_t> stop_ids, uint64_t model_digest)
    : renderer_(renderer),
      tokenizer_(tokenizer),
      stop_ids_(std::move(stop_ids)),
      model_digest_(model_digest),
      shows_tools_(renderer.UsesVariable("tools")) {
  // Random, so that no message or template contains it. Letters only, so that filters such as trim and escape do not
  // change it.
  std::random_device device;
  nonce_ = "answer";
  for (int i = 0; i < 24; ++i) nonce_.push_back(static_cast<char>('a' + device() % 26));
}

std::string PromptBuilder::Render(std::vector<tokenizer::ChatMessage> messages, bool add_generation_prompt) const {
  if (!shows_tools_) messages = WithToolPrompt(std::move(messages), tool_prompt_);
  return renderer_.Render(messages, add_generation_prompt);
}

std::vector<tokenizer::ChatMessage> PromptBuilder::Messages(Path path, size_t first, Path next,
                                                            bool with_placeholders) const {
  std::vector<tokenizer::ChatMessage> messages;
  if (!path.empty() && path[0]->role == ChatRole::kSystem) messages.push_back({"system", path[0]->text});
  for (size_t i = first; i < path.size(); ++i) {
    if (path[i]->role == ChatRole::kSystem) continue;
    const bool is_hidden = with_placeholders && path[i]->role == ChatRole::kAssistant;
    messages.push_back(MessageOf(*path[i]));
    if (!is_hidden) continue;
    messages.back() = {"assistant", Placeholder(i)};
  }
  for (const StoredMessage* message : next) messages.push_back(MessageOf(*message));
  return messages;
}

std::vector<int32_t> PromptBuilder::EncodeTail(std::string_view tail) const {
  // Some tokenizers add a space at the start of the input. Put a special token in front of the tail, as in the
  // conversation, and remove the id of that token.
  if (!stop_ids_.empty() && tokenizer_.IsSpecial(stop_ids_[0])) {
    std::string anchored(tokenizer_.IdToToken(stop_ids_[0]).value_or(""));
    anchored += tail;
    std::vector<int32_t> ids = tokenizer_.Encode(anchored, false);
    if (!ids.empty() && ids[0] == stop_ids_[0]) {
      ids.erase(ids.begin());
      return ids;
    }
  }
  return tokenizer_.Encode(tail, false);
}

std::vector<int32_t> PromptBuilder::EncodeAll(Path path, size_t first, Path next) const {
  return tokenizer_.Encode(Render(Messages(path, first, next, false), true), false);
}

bool PromptBuilder::ExtendHistory(Path path, size_t first, const std::vector<int32_t>& path_ids, Path next,
                                  BuiltPrompt& prompt) const {
  const StoredMessage* answer = path.back();
  if (path.size() < 2 || answer->role != ChatRole::kAssistant || !HasPrompt(path[path.size() - 2])) return false;
  const Path before_answer = path.first(path.size() - 1);
  const std::string known = Render(Messages(before_answer, first, {}, true), true) + Placeholder(path.size() - 1);
  std::vector<tokenizer::ChatMessage> messages = Messages(path, first, next, true);
  std::string rendered = Render(messages, true);
  size_t tail_begin = known.size();
  if (answer->num_thinking_ids > 0) {
    // Does the template write this thought? If it does, the sampled ids stay.
    const std::string thought = Placeholder(path.size());
    messages[messages.size() - 1 - next.size()].reasoning_content = thought;
    std::string with_thought = HasWholeThought(*answer) ? Render(messages, true) : "";
    const std::string placeholder = Placeholder(path.size() - 1);
    const size_t at = with_thought.find(placeholder);
    if (at == std::string::npos || with_thought.find(thought) > at) {
      return ExtendQuestion(path, first, path_ids, rendered, prompt);
    }
    rendered = std::move(with_thought);
    tail_begin = at + placeholder.size();
  } else if (!rendered.starts_with(known)) {
    return ExtendQuestion(path, first, path_ids, rendered, prompt);
  }
  std::vector<int32_t> tail = EncodeTail(std::string_view(rendered).substr(tail_begin));
  prompt.token_ids = path_ids;
  // The template normally writes a stop token after every answer. If the sampled answer ends with one too, remove one
  // of them: the template's if they are the same token, else the sampled one.
  if (!answer->token_ids.empty() && IsStopId(path_ids.back())) {
    if (!tail.empty() && tail.front() == path_ids.back()) {
      tail.erase(tail.begin());
    } else {
      prompt.token_ids.pop_back();
    }
  }
  prompt.ids_begin = static_cast<int64_t>(prompt.token_ids.size());
  prompt.token_ids.insert(prompt.token_ids.end(), tail.begin(), tail.end());
  return true;
}

bool PromptBuilder::IsStopId(int32_t id) const {
  return std::find(stop_ids_.begin(), stop_ids_.end(), id) != stop_ids_.end();
}

std::vector<int32_t> PromptBuilder::AnswerIds(const StoredMessage& answer) const {
  std::vector<int32_t> ids(
      answer.token_ids.begin() + static_cast<std::ptrdiff_t>(std::clamp<int64_t>(
                                     answer.num_thinking_ids, 0, static_cast<int64_t>(answer.token_ids.size()))),
      answer.token_ids.end());
  if (!ids.empty() && IsStopId(ids.back())) ids.pop_back();
  const auto decode = [&](size_t begin, size_t count) {
    return tokenizer_.Decode(std::span(ids).subspan(begin, count), /*skip_special_tokens=*/true);
  };
  size_t begin = 0;
  while (begin < ids.size() && IsBlank(decode(begin, 1))) ++begin;
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(begin));
  const auto trimmed = [](const std::string& text) {
    return std::string_view(text).substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  };
  if (trimmed(decode(0, ids.size())) == trimmed(answer.text)) return ids;
  return tokenizer_.Encode(answer.text, false);
}

bool PromptBuilder::ExtendQuestion(Path path, size_t first, const std::vector<int32_t>& path_ids,
                                   const std::string& rendered, BuiltPrompt& prompt) const {
  const StoredMessage& answer = *path.back();
  // Its text is not all that the template writes.
  if (!answer.tool_calls.empty()) return false;
  const std::vector<tokenizer::ChatMessage> messages = Messages(path.first(path.size() - 1), first, {}, true);
  const std::string base = Render(messages, false);
  const std::string with_generation_prompt = Render(messages, true);
  if (!with_generation_prompt.starts_with(base) || !rendered.starts_with(base)) return false;
  // The ids of the question without the generation prompt.
  const auto num_prompt_ids =
      static_cast<size_t>(std::clamp<int64_t>(answer.ids_begin, 0, static_cast<int64_t>(path_ids.size())));
  std::vector<int32_t> ids(path_ids.begin(), path_ids.begin() + static_cast<std::ptrdiff_t>(num_prompt_ids));
  const std::vector<int32_t> generation_ids = EncodeTail(std::string_view(with_generation_prompt).substr(base.size()));
  if (generation_ids.size() > ids.size() || !std::equal(generation_ids.rbegin(), generation_ids.rend(), ids.rbegin())) {
    return false;
  }
  ids.resize(ids.size() - generation_ids.size());
  const std::string placeholder = Placeholder(path.size() - 1);
  const size_t at = rendered.find(placeholder, base.size());
  if (at == std::string::npos) return false;
  prompt.ids_begin = static_cast<int64_t>(ids.size());
  const std::string_view text = rendered;
  for (const std::vector<int32_t>& part : {EncodeTail(text.substr(base.size(), at - base.size())), AnswerIds(answer),
                                           EncodeTail(text.substr(at + placeholder.size()))}) {
    ids.insert(ids.end(), part.begin(), part.end());
  }
  prompt.token_ids = std::move(ids);
  return true;
}

void PromptBuilder::LeaveOutOldTurns(Path path, size_t first, Path next, int64_t max_tokens,
                                     BuiltPrompt& prompt) const {
  const std::vector<size_t> questions = Questions(path, first);
  // Index i means that the i oldest turns are left out. Without a new question, the last turn stays.
  const size_t max_dropped = IsQuestion(next.back()) ? questions.size() : questions.size() - 1;
  const auto encode_from = [&](size_t i) {
    return EncodeAll(path, i < questions.size() ? questions[i] : path.size(), next);
  };
  std::vector<int32_t> ids = encode_from(max_dropped);
  const auto base = static_cast<int64_t>(ids.size());
  prompt = {};
  if (base > max_tokens) return;
  // Keep as many turns as fit in half of the space that the question leaves. After a cut the prefix cache matches only
  // the system message, because the start of the prompt has changed. A smaller cut would soon have to be repeated.
  const int64_t target = base + (max_tokens - base) / 2;
  // Binary search for the longest history within the target, because each trial renders and tokenizes the whole chat.
  size_t low = questions.empty() ? 0 : std::min<size_t>(1, max_dropped);
  size_t high = max_dropped;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (static_cast<int64_t>(encode_from(middle).size()) <= target) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  prompt.token_ids = encode_from(low);
  prompt.num_dropped_turns = static_cast<int64_t>(low);
  prompt.context_first = low < questions.size() ? path[questions[low]]->id : 0;
}

BuiltPrompt PromptBuilder::Build(Path path, const std::vector<int32_t>& path_ids, Path next, int64_t max_tokens,
                                 ContextShift shift) const {
  BuiltPrompt prompt;
  const std::vector<size_t> questions = Questions(path, 0);
  if (questions.empty()) {
    prompt.token_ids = EncodeAll(path, path.size(), next);
    if (static_cast<int64_t>(prompt.token_ids.size()) > max_tokens) prompt.token_ids.clear();
    return prompt;
  }
  const StoredMessage* last = LastPrompt(path);
  const bool has_ids = !last->token_ids.empty();  // an imported message has none
  size_t first = has_ids ? FirstInContext(path) : questions.front();
  if (!has_ids || last->model_digest != model_digest_) {
    prompt.rewrite = BuiltPrompt::Rewrite::kOtherModel;
  } else if (last->template_variables != renderer_.variables()) {
    prompt.rewrite = BuiltPrompt::Rewrite::kOtherVariables;
  } else if (!TryToExtendHistory(path, first, path_ids, next, prompt)) {
    prompt.rewrite = BuiltPrompt::Rewrite::kByTemplate;
  }
  const BuiltPrompt::Rewrite rewrite = prompt.rewrite;
  if (rewrite != BuiltPrompt::Rewrite::kNone) prompt.token_ids = EncodeAll(path, first, next);
  prompt.context_first = path[first]->id;
  const auto size = static_cast<int64_t>(prompt.token_ids.size());
  if (size > max_tokens && shift == ContextShift::kOff) {
    const size_t kept = IsQuestion(next.back()) ? path.size() : questions.back();
    const auto alone = static_cast<int64_t>(EncodeAll(path, kept, next).size());
    prompt = {};
    if (alone <= max_tokens) prompt.num_tokens_needed = size;
  } else if (size > max_tokens) {
    LeaveOutOldTurns(path, first, next, max_tokens, prompt);
    prompt.rewrite = rewrite;
  }
  return prompt;
}

bool PromptBuilder::TryToExtendHistory(Path path, size_t first, const std::vector<int32_t>& path_ids, Path next,
                                       BuiltPrompt& prompt) const {
  const bool has_calls = std::any_of(path.begin(), path.end(), [](const auto* m) { return !m->tool_calls.empty(); });
  if (!has_calls) return ExtendHistory(path, first, path_ids, next, prompt);
  try {
    return ExtendHistory(path, first, path_ids, next, prompt);
  } catch (const tokenizer::ChatTemplateError&) {
    // The template accepts no result of a tool without the call, which the placeholder hides.
    return false;
  }
}

}  // namespace vllm::app
