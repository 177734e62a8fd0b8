#include "tokenizer/loaders/added_tokens.h"

#include <algorithm>

#include "tokenizer/unicode/unicode.h"

namespace vllm::tokenizer {

void AddTokens(std::vector<AddedToken> tokens, TokenizerParts& parts) {
  UnicodeTable::Get();  // build it now, so that the first Encode neither waits for it nor fails because of it
  const Vocabulary& vocabulary = parts.model->vocabulary();
  auto next_id = static_cast<int64_t>(vocabulary.size());
  int32_t vocab_size = vocabulary.IdLimit();
  for (AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    if (token.id >= 0) {
      // The caller chose the id.
    } else if (const AddedToken* known = parts.added.FindContent(token.content)) {
      token.id = known->id;
    } else {
      const int32_t model_id = vocabulary.Find(token.content);
      token.id = model_id >= 0 ? model_id : static_cast<int32_t>(next_id++);
    }
    token.normalized_content = token.content;
    if (token.normalized && parts.normalizer) parts.normalizer->Apply(token.normalized_content);
    vocab_size = std::max(vocab_size, token.id + 1);
    parts.added.Add(std::move(token));
  }
  parts.added.Finish();
  parts.vocab_size = vocab_size;
}

}  // namespace vllm::tokenizer
