// Fuzzes the compiler of JSON Schemas, and the automaton of each schema that is accepted. The input is a schema, a zero
// byte, and bytes that choose a path through the automaton. Every position must have a next byte or may end, and a text
// that ends must be JSON.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/grammar_walk.h"

namespace vllm {
namespace {

constexpr size_t kMaxSteps = 64;

bool IsJson(const std::string& text) {
  try {
    return !nlohmann::json::parse(text).is_discarded();
  } catch (const nlohmann::json::out_of_range&) {
    return true;  // a number such as 9e999, which is JSON but no double
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

void Walk(GrammarAutomaton& automaton, std::string_view choices) {
  GrammarAutomaton::Position position;
  for (size_t i = 0; i < std::min(choices.size(), kMaxSteps); ++i) {
    const std::string bytes = NextBytes(automaton, position);
    const bool may_end = automaton.MayEnd(position);
    Require(may_end || !bytes.empty(), "a position has a next byte or may end");
    Require(!may_end || IsJson(position.text), "a complete text is JSON");
    if (bytes.empty()) return;
    AdvanceByChoice(automaton, position, bytes, choices[i]);
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const size_t end = input.find('\0');
  try {
    GrammarAutomaton automaton(CompileJsonSchema(input.substr(0, end)),
                               std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
    if (end != input.npos) Walk(automaton, input.substr(end + 1));
  } catch (const RequestError&) {
  } catch (const GrammarLimitError& error) {
    Require(std::string_view(error.what()).starts_with("the grammar "), "a limit is named");
  }
}

}  // namespace vllm
