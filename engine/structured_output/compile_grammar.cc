#include "engine/structured_output/compile_grammar.h"

#include <utility>

#include "engine/config/errors.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/patterns/pattern.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using Kind = StructuredOutputsParams::Kind;

Grammar OfRegex(GrammarBuilder builder, RegexId regex, const char* kind) {
  const SymbolId start = builder.AddRule();
  builder.AddAlternative(start, {builder.AddTerminal(regex)});
  Grammar grammar = builder.Finish(start);
  if (!grammar.symbol(start).productive) throw RequestError(std::string(kind) + ": allows no text");
  return grammar;
}

Grammar CompileRegex(const std::string& pattern) {
  if (pattern.empty()) throw RequestError("regex: must not be empty");
  GrammarBuilder builder;
  RegexId regex = 0;
  try {
    regex = ParsePattern(builder.regexes(), pattern, PatternSyntax::kRe2, PatternMatch::kWhole, TextSpelling::kUtf8);
  } catch (const RequestError& error) {
    throw RequestError(std::string("regex: ") + error.what());
  }
  return OfRegex(std::move(builder), regex, "regex");
}

Grammar CompileChoice(const std::vector<std::string>& choice) {
  if (choice.empty()) throw RequestError("choice: must have at least one text");
  if (choice.size() > kMaxChoices) {
    throw RequestError("choice: too many texts (" + std::to_string(choice.size()) + ", limit " +
                       std::to_string(kMaxChoices) + ")");
  }
  size_t num_bytes = 0;
  for (size_t i = 0; i < choice.size(); ++i) {
    num_bytes += choice[i].size();
    if (choice[i].empty()) throw RequestError("choice: text " + std::to_string(i + 1) + " is empty");
    if (!tokenizer::IsValidUtf8(choice[i])) {
      throw RequestError("choice: text " + std::to_string(i + 1) + " is not valid UTF-8");
    }
  }
  if (num_bytes > kMaxChoiceBytes) {
    throw RequestError("choice: too long (" + std::to_string(num_bytes) + " bytes, limit " +
                       std::to_string(kMaxChoiceBytes) + ")");
  }
  GrammarBuilder builder;
  const RegexId regex = builder.regexes().Literals(choice);
  return OfRegex(std::move(builder), regex, "choice");
}

// As vLLM decides it: a line with ::= makes it GBNF.
Grammar CompileGrammarText(const std::string& text, const FindSpecialToken& find_token) {
  if (text.find("::=") == text.npos) {
    throw RequestError("grammar: not GBNF, because it has no ::= (Lark is not supported)");
  }
  return ParseGbnf(text, find_token);
}

}  // namespace

Grammar CompileGrammar(const StructuredOutputsParams& params, const FindSpecialToken& find_token,
                       std::vector<std::string>* warnings) {
  try {
    switch (params.kind) {
      case Kind::kRegex:
        return CompileRegex(params.text);
      case Kind::kChoice:
        return CompileChoice(params.choice);
      case Kind::kGrammar:
        return CompileGrammarText(params.text, find_token);
      case Kind::kStructuralTag:
        throw RequestError("structural_tag: not supported");
      case Kind::kJson:
        break;
    }
    const JsonSchemaOptions options = {.any_order = params.any_order,
                                       .flexible_whitespace = params.flexible_whitespace};
    return CompileJsonSchema(params.text, options, warnings);
  } catch (const GrammarLimitError& error) {
    throw RequestError(std::string("structured_outputs: ") + error.what());
  }
}

}  // namespace vllm
