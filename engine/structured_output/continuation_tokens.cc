#include "engine/structured_output/continuation_tokens.h"

#include <span>
#include <string>

#include "tokenizer/tokenizer.h"

namespace vllm {
namespace {

bool Spell(std::span<const int32_t> ids, const VocabTrie& trie, std::string_view text) {
  for (const int32_t id : ids) {
    const std::string_view bytes = trie.BytesOf(id);
    if (bytes.empty() || !text.starts_with(bytes)) return false;
    text.remove_prefix(bytes.size());
  }
  return text.empty();
}

}  // namespace

std::vector<int32_t> ContinuationTokens(const tokenizer::Tokenizer& tokenizer, const VocabTrie& trie,
                                        std::string_view text) {
  std::vector<int32_t> ids = tokenizer.EncodeOrdinary(text);
  if (Spell(ids, trie, text)) return ids;
  // Many tokenizers put a space before the text. They put none after a line break.
  ids = tokenizer.EncodeOrdinary("\n" + std::string(text));
  std::string start;
  size_t num_start_ids = 0;
  while (num_start_ids < ids.size() && !start.ends_with('\n')) start += trie.BytesOf(ids[num_start_ids++]);
  ids.erase(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(num_start_ids));
  const bool is_line_break = start == "\n" || start == " \n";
  return is_line_break && Spell(ids, trie, text) ? ids : std::vector<int32_t>();
}

}  // namespace vllm
