// Fuzzes the reader of regular expressions. The input is a pattern, a zero byte and a text. The first byte chooses the
// syntax and how texts are spelled. A pattern that is accepted must match the same text again.
#include <string>

#include "engine/config/errors.h"
#include "engine/structured_output/patterns/pattern.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {

void FuzzOne(std::string_view input) {
  if (input.empty()) return;
  const auto choice = static_cast<unsigned char>(input[0]);
  input.remove_prefix(1);
  const size_t end = input.find('\0');
  const std::string_view text = end == input.npos ? "" : input.substr(end + 1).substr(0, 256);
  const PatternSyntax syntax = choice % 2 == 0 ? PatternSyntax::kEcma : PatternSyntax::kRe2;
  const PatternMatch match = choice / 2 % 2 == 0 ? PatternMatch::kWhole : PatternMatch::kSearch;
  const TextSpelling spelling = choice / 4 % 2 == 0 ? TextSpelling::kUtf8 : TextSpelling::kJsonString;
  try {
    RegexStore store;
    const RegexId regex = ParsePattern(store, input.substr(0, end), syntax, match, spelling);
    const bool matches = store.Matches(regex, text);
    Require(store.Matches(regex, text) == matches, "a text that matched matches again");
    if (matches) Require(!store.IsNothing(regex), "a pattern that matches a text is not empty");
  } catch (const RequestError&) {
  } catch (const GrammarLimitError&) {
  }
}

}  // namespace vllm
