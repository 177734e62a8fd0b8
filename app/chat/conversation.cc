#include "app/chat/conversation.h"

#include <algorithm>
#include <random>
#include <utility>

namespace vllm::app {

Conversation::Conversation(const PromptRenderer& renderer, const tokenizer::Tokenizer& tokenizer,
                           std::vector<int32_t> stop_ids)
    : renderer_(renderer), tokenizer_(tokenizer), stop_ids_(std::move(stop_ids)) {
  // Random, so that no message or template contains it. Letters only, so that filters such as trim and escape do not
  // change it.
  std::random_device device;
  nonce_ = "answer";
  for (int i = 0; i < 24; ++i) nonce_.push_back(static_cast<char>('a' + device() % 26));
}

void Conversation::Reset(std::string system) {
  system_ = std::move(system);
  turns_.clear();
  ids_.clear();
  rendered_.clear();
  exact_ = true;
}

std::vector<tokenizer::ChatMessage> Conversation::Messages(const std::string& message, bool with_placeholders) const {
  std::vector<tokenizer::ChatMessage> messages;
  if (!system_.empty()) messages.push_back({"system", system_});
  for (const Turn& turn : turns_) {
    messages.push_back({"user", turn.message});
    messages.push_back({"assistant", with_placeholders ? turn.placeholder : turn.answer});
  }
  messages.push_back({"user", message});
  return messages;
}

std::vector<int32_t> Conversation::EncodeTail(std::string_view tail) const {
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

std::vector<int32_t> Conversation::EncodeAll(const std::string& message) const {
  return tokenizer_.Encode(renderer_.Render(Messages(message, false), true), false);
}

std::vector<int32_t> Conversation::DropOldTurns(const std::string& message, int64_t max_tokens) {
  const std::vector<Turn> all = std::exchange(turns_, {});
  const auto keep_from = [&](size_t first) {
    turns_.assign(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
    return EncodeAll(message);
  };
  std::vector<int32_t> ids = keep_from(all.size());
  const auto base = static_cast<int64_t>(ids.size());
  if (base > max_tokens) {
    turns_ = all;
    return {};
  }
  // Keep as many turns as fit in half of the space that the system message and `message` leave. After a cut the prefix
  // cache matches only the system message, because the turn after it has changed. A smaller cut would soon have to be
  // repeated.
  const int64_t target = base + (max_tokens - base) / 2;
  // Binary search for the longest history within the target, because each trial renders and tokenizes the whole chat.
  size_t low = all.empty() ? 0 : 1;
  size_t high = all.size();
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (static_cast<int64_t>(keep_from(middle).size()) <= target) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  ids = keep_from(low);
  num_dropped_turns_ = static_cast<int64_t>(low);
  return ids;
}

std::vector<int32_t> Conversation::BuildPrompt(const std::string& message, int64_t max_tokens) {
  num_dropped_turns_ = 0;
  was_rerendered_ = false;
  std::string rendered = renderer_.Render(Messages(message, true), true);
  std::vector<int32_t> ids;
  if (turns_.empty()) {
    ids = tokenizer_.Encode(rendered, false);
  } else {
    const std::string known = rendered_ + turns_.back().placeholder;
    if (exact_ && rendered.compare(0, known.size(), known) == 0) {
      std::vector<int32_t> tail = EncodeTail(std::string_view(rendered).substr(known.size()));
      ids = ids_;
      // The template normally writes a stop token after every answer. If the sampled answer ends with one too, remove
      // one of them: the template's if they are the same token, else the sampled one.
      if (!ids.empty() && std::find(stop_ids_.begin(), stop_ids_.end(), ids.back()) != stop_ids_.end()) {
        if (!tail.empty() && tail.front() == ids.back()) {
          tail.erase(tail.begin());
        } else {
          ids.pop_back();
        }
      }
      ids.insert(ids.end(), tail.begin(), tail.end());
    } else {
      was_rerendered_ = exact_;
      ids = EncodeAll(message);
    }
  }
  if (static_cast<int64_t>(ids.size()) > max_tokens) {
    const std::vector<Turn> before = turns_;
    try {
      ids = DropOldTurns(message, max_tokens);
      if (ids.empty()) return {};
      rendered = renderer_.Render(Messages(message, true), true);
    } catch (...) {
      turns_ = before;
      num_dropped_turns_ = 0;
      throw;
    }
  }
  pending_message_ = message;
  pending_rendered_ = std::move(rendered);
  pending_ids_ = ids;
  return ids;
}

void Conversation::CommitReply(const std::vector<int32_t>& token_ids, const std::string& text) {
  turns_.push_back({std::move(pending_message_), text, nonce_ + std::to_string(next_placeholder_++) + "."});
  ids_ = std::move(pending_ids_);
  ids_.insert(ids_.end(), token_ids.begin(), token_ids.end());
  rendered_ = std::move(pending_rendered_);
  exact_ = true;
}

void Conversation::DiscardPending() {
  pending_message_.clear();
  pending_rendered_.clear();
  pending_ids_.clear();
  // The turns that BuildPrompt dropped stay dropped, so ids_ and rendered_ no longer match turns_.
  if (num_dropped_turns_ > 0) exact_ = false;
}

}  // namespace vllm::app
