#include "tokenizer/patterns/pattern_json.h"

#include "tokenizer/formats/json_fields.h"

namespace vllm::tokenizer {

std::unique_ptr<TextPattern> MakePattern(const nlohmann::json& json, const std::string& where) {
  if (json.is_object() && json.contains("String")) return MakeLiteralPattern(StringField(json, "String", where));
  return MakeRegexPattern(StringField(json, "Regex", where));
}

double ReplaceGrowth(const nlohmann::json& pattern, std::string_view content) {
  size_t literal_bytes = 0;
  if (pattern.is_object() && pattern.contains("String") && pattern["String"].is_string()) {
    literal_bytes = pattern["String"].get_ref<const std::string&>().size();
  }
  // An empty literal matches before every character, and a regular expression may do so too.
  if (literal_bytes == 0) return static_cast<double>(content.size()) + 1;
  return static_cast<double>(content.size()) / static_cast<double>(literal_bytes);
}

std::string ReplaceMatches(const TextPattern& pattern, std::string_view text, std::string_view content) {
  std::vector<Match> matches;
  std::string out;
  out.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    matches.clear();
    position = pattern.FindMatches(text, position, matches);
    for (const Match& match : matches) {
      out += match.is_match ? content : text.substr(match.begin, match.end - match.begin);
    }
  }
  return out;
}

}  // namespace vllm::tokenizer
