// Grammars such as those of JSON Schemas, made by hand. For tests and benchmarks.
#pragma once

#include <string>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/regex/code_point_set.h"

namespace vllm::testing_support {

// The parts of a JSON grammar.
class JsonLikeBuilder {
 public:
  RegexStore& regexes() { return builder.regexes(); }
  SymbolId Text(const char* text) { return builder.AddTerminal(regexes().Literal(text)); }
  // A string with quotation marks around `inside`.
  RegexId Quoted(RegexId inside) {
    const RegexId quote = regexes().Literal("\"");
    return regexes().Concat(std::vector<RegexId>{quote, inside, quote});
  }
  RegexId AnyCharacter() { return CodePointsAsRegex(regexes(), CodePointSet::All(), TextSpelling::kJsonString); }
  RegexId Characters(uint32_t min, uint32_t max) { return regexes().Repeat(AnyCharacter(), min, max); }
  RegexId AnyString() { return Quoted(AnyText(regexes(), TextSpelling::kJsonString)); }
  RegexId Digits(uint32_t min, uint32_t max) { return regexes().Repeat(Range('0', '9'), min, max); }
  RegexId Range(uint8_t first, uint8_t last) { return regexes().Bytes(ByteSet::Range(first, last)); }
  RegexId Number() {
    const RegexId whole =
        regexes().Or({regexes().Literal("0"), regexes().Concat(Range('1', '9'), Digits(0, RegexStore::kUnbounded))});
    const RegexId fraction = regexes().Concat(regexes().Literal("."), Digits(1, RegexStore::kUnbounded));
    return regexes().Concat(
        std::vector<RegexId>{regexes().Optional(regexes().Literal("-")), whole, regexes().Optional(fraction)});
  }
  // A string that is none of `names`.
  RegexId OtherName(const std::vector<std::string>& names) {
    return Quoted(
        regexes().And({AnyText(regexes(), TextSpelling::kJsonString), regexes().Not(regexes().Literals(names))}));
  }
  // {"name":value,...}, with all names in this order, and then others with any value if `other` is no kNoSymbol.
  SymbolId Object(const std::vector<std::pair<std::string, SymbolId>>& properties, SymbolId other) {
    std::vector<SymbolId> parts = {Text("{")};
    std::vector<std::string> names;
    for (const auto& [name, value] : properties) {
      parts.push_back(Text(((names.empty() ? "\"" : ",\"") + name + "\":").c_str()));
      parts.push_back(value);
      names.push_back(name);
    }
    if (other != GrammarBuilder::kNoSymbol) {
      const SymbolId pair = builder.AddRule();
      builder.AddAlternative(pair, {Text(","), builder.AddTerminal(OtherName(names)), Text(":"), other});
      parts.push_back(builder.AddRepeat(pair, GrammarBuilder::kNoSymbol, 0, GrammarBuilder::kUnbounded));
    }
    parts.push_back(Text("}"));
    const SymbolId rule = builder.AddRule();
    builder.AddAlternative(rule, parts);
    return rule;
  }
  SymbolId Array(SymbolId item) {
    const SymbolId rule = builder.AddRule();
    builder.AddAlternative(rule,
                           {Text("["), builder.AddRepeat(item, Text(","), 0, GrammarBuilder::kUnbounded), Text("]")});
    return rule;
  }
  // Any JSON value without whitespace.
  SymbolId Value() {
    const SymbolId value = builder.AddRule();
    const SymbolId string = builder.AddTerminal(AnyString());
    const SymbolId pair = builder.AddRule();
    builder.AddAlternative(pair, {string, Text(":"), value});
    builder.AddAlternative(value,
                           {Text("{"), builder.AddRepeat(pair, Text(","), 0, GrammarBuilder::kUnbounded), Text("}")});
    builder.AddAlternative(value, {Array(value)});
    builder.AddAlternative(value, {string});
    builder.AddAlternative(value, {builder.AddTerminal(Number())});
    for (const char* word : {"true", "false", "null"}) builder.AddAlternative(value, {Text(word)});
    return value;
  }

  GrammarBuilder builder;
};

}  // namespace vllm::testing_support
