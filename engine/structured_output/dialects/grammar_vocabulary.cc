#include "engine/structured_output/dialects/grammar_vocabulary.h"

#include <algorithm>
#include <utility>

#include "engine/config/escape.h"
#include "engine/structured_output/dialects/free_text.h"
#include "engine/structured_output/regex/code_point_set.h"

namespace vllm {
namespace {

// The most ordinary tokens in one range.
constexpr int32_t kMaxTexts = 1000;

std::vector<TokenRange> Without(std::vector<TokenRange> ranges, const std::vector<TokenRange>& excluded) {
  for (const TokenRange& cut : excluded) {
    std::vector<TokenRange> rest;
    for (const TokenRange& range : ranges) {
      if (cut.last < range.first || cut.first > range.last) {
        rest.push_back(range);
        continue;
      }
      if (range.first < cut.first) rest.push_back({range.first, cut.first - 1});
      if (range.last > cut.last) rest.push_back({cut.last + 1, range.last});
    }
    ranges = std::move(rest);
  }
  return ranges;
}

}  // namespace

void NamedTokens::Append(const NamedTokens& other) {
  ranges.insert(ranges.end(), other.ranges.begin(), other.ranges.end());
  texts.insert(texts.end(), other.texts.begin(), other.texts.end());
}

NamedTokens TokensOfName(const GrammarVocabulary& vocabulary, std::string_view name) {
  if (vocabulary.find == nullptr) return {.ranges = {{0, 0}}, .texts = {}};
  const std::optional<int32_t> id = vocabulary.find(name);
  if (!id) throw UnknownTokenError("the model has no token " + Escape(name));
  return TokensOfRange(vocabulary, {*id, *id});
}

NamedTokens TokensOfRange(const GrammarVocabulary& vocabulary, TokenRange range) {
  NamedTokens tokens;
  if (vocabulary.bytes == nullptr) return {.ranges = {range}, .texts = {}};
  if (!vocabulary.bytes(range.first) || !vocabulary.bytes(range.last)) {
    throw UnknownTokenError("the model has no token " +
                            std::to_string(vocabulary.bytes(range.first) ? range.last : range.first));
  }
  for (int32_t id = range.first; id <= range.last; ++id) {
    std::optional<std::string> bytes = vocabulary.bytes(id);
    if (!bytes) continue;
    if (!bytes->empty()) {
      if (tokens.texts.size() == kMaxTexts) {
        throw UnknownTokenError("too many tokens that are text (limit " + std::to_string(kMaxTexts) + ")");
      }
      tokens.texts.push_back(std::move(*bytes));
    } else if (!tokens.ranges.empty() && tokens.ranges.back().last + 1 == id) {
      tokens.ranges.back().last = id;
    } else {
      tokens.ranges.push_back({id, id});
    }
  }
  return tokens;
}

GrammarTree::NodeId AddOneOfTokens(GrammarBuilder& builder, GrammarTree& tree, const NamedTokens& tokens) {
  std::vector<GrammarTree::NodeId> ways;
  if (!tokens.ranges.empty()) ways.push_back(tree.AddSymbol(builder.AddTokens(tokens.ranges)));
  if (!tokens.texts.empty()) ways.push_back(tree.AddRegex(builder.regexes().Literals(tokens.texts)));
  return tree.AddAlternatives(std::move(ways));
}

GrammarTree::NodeId AddAnyTokens(GrammarBuilder& builder, GrammarTree& tree, const GrammarVocabulary& vocabulary,
                                 const NamedTokens& excluded, uint32_t min) {
  RegexStore& store = builder.regexes();
  const RegexId text = TextWithout(store, excluded.texts);
  const RegexId some_text = store.And({text, store.Not(RegexStore::kEmpty)});
  const std::vector<TokenRange> special = Without(vocabulary.special_tokens, excluded.ranges);
  if (special.empty()) return tree.AddRegex(min == 0 ? text : some_text);
  // Text, with special tokens between its pieces. Pieces are not neighbors: they might make up an excluded text.
  const SymbolId separator = builder.AddTokens(special);
  const SymbolId piece = builder.AddTerminal(text);
  const SymbolId any = builder.AddRepeat(piece, separator, 1, GrammarBuilder::kUnbounded);
  if (min == 0) return tree.AddSymbol(any);
  const SymbolId rule = builder.AddRule();
  builder.AddAlternative(rule, {builder.AddTerminal(some_text)});
  builder.AddAlternative(rule, {piece, separator, any});
  return tree.AddSymbol(rule);
}

}  // namespace vllm
