#include "engine/structured_output/dialects/grammar_dialect.h"

#include <algorithm>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/gbnf.h"
#include "engine/structured_output/dialects/lark.h"
#include "engine/structured_output/patterns/pattern.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

constexpr size_t kMaxTexts = 50'000;
constexpr size_t kMaxTextBytes = size_t{4} << 20;

// Returns whether a line begins with the head of a rule of GBNF, or with its `::=`.
bool IsGbnf(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto skip = [&](std::string_view characters) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(characters)));
    };
    skip(" \t\r");
    skip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    if (line.starts_with('[')) line.remove_prefix(std::min(line.size(), line.find(']') + 1));  // options of xgrammar
    skip(" \t");
    if (line.starts_with("::=")) return true;
  }
  return false;
}

}  // namespace

SymbolId AddGrammarText(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
                        const JsonSchemaOptions& options) {
  return IsGbnf(text) ? AddGbnf(builder, text, vocabulary) : AddLark(builder, text, vocabulary, options);
}

SymbolId AddTextChoice(GrammarBuilder& builder, std::span<const std::string> texts) {
  if (texts.empty()) throw RequestError("choice: must have a text");
  if (texts.size() > kMaxTexts) throw RequestError("choice: too many texts (limit " + std::to_string(kMaxTexts) + ")");
  size_t num_bytes = 0;
  for (const std::string& text : texts) {
    if (text.empty()) throw RequestError("choice: a text must not be empty");
    if (!tokenizer::IsValidUtf8(text)) throw RequestError("choice: a text is not valid UTF-8");
    num_bytes += text.size();
  }
  if (num_bytes > kMaxTextBytes) {
    throw RequestError("choice: too long (" + std::to_string(num_bytes) + " bytes, limit " +
                       std::to_string(kMaxTextBytes) + ")");
  }
  return builder.AddTerminal(builder.regexes().Literals(std::vector<std::string>(texts.begin(), texts.end())));
}

SymbolId AddWholePattern(GrammarBuilder& builder, std::string_view pattern) {
  if (pattern.empty()) throw RequestError("regex: must not be empty");
  try {
    return builder.AddTerminal(
        ParsePattern(builder.regexes(), pattern, PatternSyntax::kRe2, PatternMatch::kWhole, TextSpelling::kUtf8));
  } catch (const RequestError& error) {
    throw RequestError(std::string("regex: ") + error.what());
  }
}

Grammar FinishGrammar(GrammarBuilder& builder, SymbolId symbol, std::string_view kind) {
  const SymbolId start = builder.AddRule();  // the start is not a terminal
  builder.AddAlternative(start, {symbol});
  Grammar grammar = builder.Finish(start);
  if (!grammar.symbol(start).productive) throw RequestError(std::string(kind) + ": allows no text");
  return grammar;
}

}  // namespace vllm
