#include "app/chat/special_texts.h"

#include <optional>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMinBytes = 3;  // shorter ones are ordinary characters of some tokenizers

}  // namespace

SpecialTexts::SpecialTexts(const tokenizer::Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.VocabSize(); ++id) {
    if (!tokenizer.IsSpecial(id)) continue;
    const std::optional<std::string_view> text = tokenizer.IdToToken(id);
    if (text && text->size() >= kMinBytes) texts_.emplace_back(*text);
  }
}

std::string SpecialTexts::Break(std::string text) const {
  for (const std::string& special : texts_) {
    const size_t first_size = tokenizer::Utf8SequenceLength(special[0]);
    if (first_size >= special.size()) continue;
    for (size_t at = text.find(special); at != std::string::npos; at = text.find(special, at)) {
      text.insert(at + first_size, " ");
    }
  }
  return text;
}

}  // namespace vllm::app
