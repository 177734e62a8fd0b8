#include "tokenizer/pattern_json.h"

#include "tokenizer/json_fields.h"

namespace vllm {

std::unique_ptr<TextPattern> MakePattern(const nlohmann::json& json, const std::string& where) {
  if (json.is_object() && json.contains("String")) return MakeLiteralPattern(StringField(json, "String", where));
  return MakeRegexPattern(StringField(json, "Regex", where));
}

std::string ReplaceMatches(const TextPattern& pattern, std::string_view text, std::string_view content) {
  std::vector<Match> matches;
  pattern.FindMatches(text, matches);
  std::string out;
  out.reserve(text.size());
  for (const Match& match : matches)
    out += match.is_match ? content : text.substr(match.begin, match.end - match.begin);
  return out;
}

}  // namespace vllm
