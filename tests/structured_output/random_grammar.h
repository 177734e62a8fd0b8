// RandomGrammar: a small grammar of all kinds of rules and terminals over the letters a, b and c. For tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm::testing_support {

// The special tokens that RandomGrammar uses.
constexpr int32_t kFirstSpecial = 1, kLastSpecial = 3;

// `pick(n)` returns a number less than n. Equal numbers make equal grammars. With terminals that may be empty, rules
// that may be empty or have no text, and recursion of all kinds.
template <typename Pick>
Grammar RandomGrammar(Pick pick) {
  GrammarBuilder builder;
  RegexStore& regexes = builder.regexes();
  const auto letter = [&] { return static_cast<uint8_t>('a' + pick(3)); };
  std::vector<SymbolId> symbols;
  for (uint64_t i = 0, n = 2 + pick(3); i < n; ++i) {
    std::string text;
    for (uint64_t j = 0, length = 1 + pick(2); j < length; ++j) text.push_back(static_cast<char>(letter()));
    RegexId regex = regexes.Literal(text);
    switch (pick(8)) {
      case 0:
      case 1: {
        const auto min = static_cast<uint32_t>(pick(2));
        regex = regexes.Repeat(regex, min, pick(2) == 0 ? 3 : RegexStore::kUnbounded);
        break;
      }
      case 2: {
        ByteSet set = ByteSet::Range(0, 'a');  // a and other bytes
        if (pick(2) == 0) set.AddRange('c', 0xFF);
        regex = regexes.Repeat(regexes.Bytes(set), static_cast<uint32_t>(pick(2)), 1 + static_cast<uint32_t>(pick(3)));
        break;
      }
      case 3:
        regex = regexes.And({regexes.Star(regexes.Bytes(ByteSet::Range('a', 'c'))), regexes.Not(regex)});
        break;
      default:
        break;
    }
    if (pick(4) == 0) regex = regexes.Or({regex, regexes.Literal("c")});
    symbols.push_back(builder.AddTerminal(regex));
  }
  if (pick(3) == 0) {
    const auto first = kFirstSpecial + static_cast<int32_t>(pick(3));
    symbols.push_back(builder.AddTokens({{first, kLastSpecial}}));
  }
  std::vector<SymbolId> rules;
  for (uint64_t i = 0, n = 2 + pick(3); i < n; ++i) {
    rules.push_back(builder.AddRule());
    symbols.push_back(rules.back());
  }
  for (const SymbolId rule : rules) {
    for (uint64_t i = 0, n = 1 + pick(3); i < n; ++i) {
      std::vector<SymbolId> sequence;
      for (uint64_t j = 0, length = pick(4); j < length; ++j) sequence.push_back(symbols[pick(symbols.size())]);
      if (!sequence.empty() && pick(5) == 0) {
        const SymbolId separator = pick(2) == 0 ? GrammarBuilder::kNoSymbol : symbols[0];
        const auto min = static_cast<uint32_t>(pick(3));
        sequence[0] = builder.AddRepeat(sequence[0], separator, min, pick(2) == 0 ? 3 : GrammarBuilder::kUnbounded);
      }
      builder.AddAlternative(rule, sequence);
    }
  }
  return builder.Finish(rules[0]);
}

}  // namespace vllm::testing_support
