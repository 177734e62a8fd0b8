#include "tokenizer/script_pattern.h"

#include "tokenizer/unicode_script.h"
#include "tokenizer/utf8.h"

namespace vllm {

ScriptPattern::ScriptPattern() { ScriptTable::Get(); }

void ScriptPattern::FindMatches(std::string_view text, std::vector<Match>& matches) const {
  const ScriptTable& table = ScriptTable::Get();
  uint8_t last = ScriptTable::kNoScript;
  const size_t first = matches.size();
  for (size_t position = 0; position < text.size();) {
    const auto [code_point, length] = CodePointAt(text, position);
    const uint8_t script = table.ScriptOf(code_point);
    if (script != ScriptTable::kNoScript && script != last) {
      if (matches.size() > first) {
        matches.back().end = position;
      } else if (position > 0) {
        matches.push_back({0, position, false});
      }
      matches.push_back({position, text.size(), true});
      last = script;
    }
    position += length;
  }
  if (matches.size() == first && !text.empty()) matches.push_back({0, text.size(), false});
}

}  // namespace vllm
