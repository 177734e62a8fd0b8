#include "engine/structured_output/compile_grammar.h"

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/grammar_dialect.h"
#include "engine/structured_output/dialects/structural_tag.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/tool_calls/call_grammar.h"

namespace vllm {
namespace {

using Kind = StructuredOutputsParams::Kind;

SymbolId AddConstraint(GrammarBuilder& builder, const StructuredOutputsParams& params,
                       const GrammarVocabulary& vocabulary, std::vector<std::string>* warnings) {
  const JsonSchemaOptions options = {.any_order = params.any_order, .flexible_whitespace = params.flexible_whitespace};
  switch (params.kind) {
    case Kind::kJson:
      return AddJsonSchema(builder, params.text, options, warnings);
    case Kind::kRegex:
      return AddWholePattern(builder, params.text);
    case Kind::kChoice:
      return AddTextChoice(builder, params.choice);
    case Kind::kGrammar:
      return AddGrammarText(builder, params.text, vocabulary, options);
    case Kind::kStructuralTag:
      return AddStructuralTag(builder, params.text, vocabulary, options);
    case Kind::kToolCalls:
      return AddToolCalls(builder, ParseToolCallConstraint(params.text), vocabulary, options, warnings);
  }
  throw RequestError("structured_outputs: unknown kind of constraint");
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kJson:
      return "JSON schema";
    case Kind::kRegex:
      return "regex";
    case Kind::kChoice:
      return "choice";
    case Kind::kGrammar:
      return "grammar";
    case Kind::kStructuralTag:
      return "structural tag";
    case Kind::kToolCalls:
      return "tool calls";
  }
  return "structured_outputs";
}

Grammar Compile(const StructuredOutputsParams& params, const GrammarVocabulary& vocabulary,
                std::vector<std::string>* warnings) {
  if (params.kind == Kind::kJson && params.before.empty()) {
    return CompileJsonSchema(
        params.text, {.any_order = params.any_order, .flexible_whitespace = params.flexible_whitespace}, warnings);
  }
  GrammarBuilder builder;
  const SymbolId constraint = AddConstraint(builder, params, vocabulary, warnings);
  SymbolId start = constraint;
  if (!params.before.empty()) {
    const SymbolId before = AddGrammarText(builder, params.before, vocabulary, {});
    start = builder.AddRule();
    builder.AddAlternative(start, {before, constraint});
  }
  return FinishGrammar(builder, start, NameOf(params.kind));
}

}  // namespace

Grammar CompileGrammar(const StructuredOutputsParams& params, const GrammarVocabulary& vocabulary,
                       std::vector<std::string>* warnings) {
  try {
    return Compile(params, vocabulary, warnings);
  } catch (const GrammarLimitError& error) {
    throw RequestError(std::string("structured_outputs: ") + error.what());
  }
}

}  // namespace vllm
