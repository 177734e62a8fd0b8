#include "engine/structured_output/compile_grammar.h"

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/grammar_dialect.h"
#include "engine/structured_output/dialects/structural_tag.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/tool_calls/call_grammar.h"

namespace vllm {
namespace {

using Kind = StructuredOutputsParams::Kind;

Grammar Compile(const StructuredOutputsParams& params, const GrammarVocabulary& vocabulary,
                std::vector<std::string>* warnings) {
  const JsonSchemaOptions options = {.any_order = params.any_order, .flexible_whitespace = params.flexible_whitespace};
  GrammarBuilder builder;
  switch (params.kind) {
    case Kind::kJson:
      return CompileJsonSchema(params.text, options, warnings);
    case Kind::kRegex:
      return FinishGrammar(builder, AddWholePattern(builder, params.text), "regex");
    case Kind::kChoice:
      return FinishGrammar(builder, AddTextChoice(builder, params.choice), "choice");
    case Kind::kGrammar:
      return FinishGrammar(builder, AddGrammarText(builder, params.text, vocabulary, options), "grammar");
    case Kind::kStructuralTag:
      return FinishGrammar(builder, AddStructuralTag(builder, params.text, vocabulary, options), "structural tag");
    case Kind::kToolCalls:
      return FinishGrammar(
          builder,
          AddToolCalls(builder, ParseToolCallConstraint(params.text), vocabulary, options, warnings), "tool calls");
  }
  throw RequestError("structured_outputs: unknown kind of constraint");
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
