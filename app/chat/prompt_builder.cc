#include "app/chat/prompt_builder.h"

#include <algorithm>
#include <random>
#include <utility>

namespace vllm::app {
namespace {

bool IsQuestion(const StoredMessage* message) { return message->role == ChatRole::kUser; }

// Returns the indices of the questions in path[first, ...).
std::vector<size_t> Questions(std::span<const StoredMessage* const> path, size_t first) {
  std::vector<size_t> indices;
  for (size_t i = first; i < path.size(); ++i) {
    if (IsQuestion(path[i])) indices.push_back(i);
  }
  return indices;
}

// Returns the index of the oldest question that was in the prompt of the last one.
size_t FirstInContext(std::span<const StoredMessage* const> path) {
  const std::vector<size_t> questions = Questions(path, 0);
  if (questions.empty()) return path.size();
  const StoredMessage* last = path[questions.back()];
  if (last->context_first == 0) return questions.back();
  for (const size_t index : questions) {
    if (path[index]->id == last->context_first) return index;
  }
  return questions.front();
}

}  // namespace

int64_t NumDroppedTurns(std::span<const StoredMessage* const> path) {
  if (Questions(path, 0).empty()) return 0;
  const size_t first = FirstInContext(path);
  return static_cast<int64_t>(Questions(path.first(first), 0).size());
}

PromptBuilder::PromptBuilder(const PromptRenderer& renderer, const tokenizer::Tokenizer& tokenizer,
                             std::vector<int32_t> stop_ids, uint64_t model_digest)
    : renderer_(renderer), tokenizer_(tokenizer), stop_ids_(std::move(stop_ids)), model_digest_(model_digest) {
  // Random, so that no message or template contains it. Letters only, so that filters such as trim and escape do not
  // change it.
  std::random_device device;
  nonce_ = "answer";
  for (int i = 0; i < 24; ++i) nonce_.push_back(static_cast<char>('a' + device() % 26));
}

std::vector<tokenizer::ChatMessage> PromptBuilder::Messages(Path path, size_t first, const std::string* question,
                                                            bool with_placeholders) const {
  std::vector<tokenizer::ChatMessage> messages;
  if (!path.empty() && path[0]->role == ChatRole::kSystem) messages.push_back({"system", path[0]->text});
  for (size_t i = first; i < path.size(); ++i) {
    if (path[i]->role == ChatRole::kSystem) continue;
    const bool is_hidden = with_placeholders && path[i]->role == ChatRole::kAssistant;
    messages.push_back({std::string(RoleName(path[i]->role)), is_hidden ? Placeholder(i) : path[i]->text});
  }
  if (question != nullptr) messages.push_back({"user", *question});
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

std::vector<int32_t> PromptBuilder::EncodeAll(Path path, size_t first, const std::string& question) const {
  return tokenizer_.Encode(renderer_.Render(Messages(path, first, &question, false), true), false);
}

bool PromptBuilder::ExtendHistory(Path path, size_t first, const std::vector<int32_t>& path_ids,
                                  const std::string& question, BuiltPrompt& prompt) const {
  const StoredMessage* answer = path.back();
  if (path.size() < 2 || answer->role != ChatRole::kAssistant || !IsQuestion(path[path.size() - 2])) return false;
  const Path before_answer = path.first(path.size() - 1);
  const std::string known =
      renderer_.Render(Messages(before_answer, first, nullptr, true), true) + Placeholder(path.size() - 1);
  const std::string rendered = renderer_.Render(Messages(path, first, &question, true), true);
  if (!rendered.starts_with(known)) return false;
  std::vector<int32_t> tail = EncodeTail(std::string_view(rendered).substr(known.size()));
  prompt.token_ids = path_ids;
  // The template normally writes a stop token after every answer. If the sampled answer ends with one too, remove one
  // of them: the template's if they are the same token, else the sampled one.
  if (!answer->token_ids.empty() && std::find(stop_ids_.begin(), stop_ids_.end(), path_ids.back()) != stop_ids_.end()) {
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

void PromptBuilder::LeaveOutOldTurns(Path path, size_t first, const std::string& question, int64_t max_tokens,
                                     BuiltPrompt& prompt) const {
  const std::vector<size_t> questions = Questions(path, first);
  // Index i means that the i oldest turns are left out.
  const auto encode_from = [&](size_t i) {
    return EncodeAll(path, i < questions.size() ? questions[i] : path.size(), question);
  };
  std::vector<int32_t> ids = encode_from(questions.size());
  const auto base = static_cast<int64_t>(ids.size());
  prompt = {};
  if (base > max_tokens) return;
  // Keep as many turns as fit in half of the space that the question leaves. After a cut the prefix cache matches only
  // the system message, because the start of the prompt has changed. A smaller cut would soon have to be repeated.
  const int64_t target = base + (max_tokens - base) / 2;
  // Binary search for the longest history within the target, because each trial renders and tokenizes the whole chat.
  size_t low = questions.empty() ? 0 : 1;
  size_t high = questions.size();
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

BuiltPrompt PromptBuilder::Build(Path path, const std::vector<int32_t>& path_ids, const std::string& question,
                                 int64_t max_tokens, ContextShift shift) const {
  BuiltPrompt prompt;
  const std::vector<size_t> questions = Questions(path, 0);
  if (questions.empty()) {
    prompt.token_ids = EncodeAll(path, path.size(), question);
    if (static_cast<int64_t>(prompt.token_ids.size()) > max_tokens) prompt.token_ids.clear();
    return prompt;
  }
  const StoredMessage* last = path[questions.back()];
  const bool has_ids = !last->token_ids.empty();  // an imported message has none
  size_t first = has_ids ? FirstInContext(path) : questions.front();
  if (!has_ids || last->model_digest != model_digest_) {
    prompt.rewrite = BuiltPrompt::Rewrite::kOtherModel;
  } else if (!ExtendHistory(path, first, path_ids, question, prompt)) {
    prompt.rewrite = BuiltPrompt::Rewrite::kByTemplate;
  }
  const BuiltPrompt::Rewrite rewrite = prompt.rewrite;
  if (rewrite != BuiltPrompt::Rewrite::kNone) prompt.token_ids = EncodeAll(path, first, question);
  prompt.context_first = path[first]->id;
  const auto size = static_cast<int64_t>(prompt.token_ids.size());
  if (size > max_tokens && shift == ContextShift::kOff) {
    const auto alone = static_cast<int64_t>(EncodeAll(path, path.size(), question).size());
    prompt = {};
    if (alone <= max_tokens) prompt.num_tokens_needed = size;
  } else if (size > max_tokens) {
    LeaveOutOldTurns(path, first, question, max_tokens, prompt);
    prompt.rewrite = rewrite;
  }
  return prompt;
}

}  // namespace vllm::app
