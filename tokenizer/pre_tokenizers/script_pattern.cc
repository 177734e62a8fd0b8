#include "tokenizer/pre_tokenizers/script_pattern.h"

#include "tokenizer/unicode/unicode_script.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

ScriptPattern::ScriptPattern() { ScriptTable::Get(); }

size_t ScriptPattern::FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const {
  const ScriptTable& table = ScriptTable::Get();
  uint8_t last = ScriptTable::kNoScript;
  const size_t first = matches.size();
  for (size_t position = from; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    const uint8_t script = table.ScriptOf(code_point);
    if (script != ScriptTable::kNoScript && script != last) {
      if (matches.size() > first) {
        matches.back().end = position;
        if (matches.size() - first >= kBatch) return position;
      } else if (position > from) {
        matches.push_back({from, position, false});
      }
      matches.push_back({position, text.size(), true});
      last = script;
    }
    position += length;
  }
  if (matches.size() == first && !text.empty()) matches.push_back({from, text.size(), false});
  return text.size();
}

}  // namespace vllm
