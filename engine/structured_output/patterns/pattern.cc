#include "engine/structured_output/patterns/pattern.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/patterns/pattern_tree.h"

namespace vllm {
namespace {

using Kind = PatternTree::Kind;

// The texts of a part of a pattern, depending on whether the part begins at the start of the whole text and ends at its
// end. ^ and $ look at these; without them, all four are equal.
struct Part {
  // [begins at the start][ends at the end]; texts of at least one byte. kNothing without an anchor if there is no
  // simple expression for them.
  std::array<std::array<RegexId, 2>, 2> texts{};
  // Whether the part has the empty text there. For the empty text, the part begins and ends at the same place.
  std::array<std::array<bool, 2>, 2> empty{};
  bool has_anchor = false;
  RegexId whole = RegexStore::kNothing;  // without an anchor: all texts
};

class Compiler {
 public:
  Compiler(RegexStore& store, const PatternTree& tree, TextSpelling spelling)
      : store_(store), tree_(tree), spelling_(spelling) {}

  RegexId Compile(PatternMatch match) {
    const bool searches = match == PatternMatch::kSearch;
    const Part found = TopLevel(tree_.root, searches ? AnyTextPart() : Plain(RegexStore::kEmpty));
    return Whole(searches ? Concat(AnyTextPart(), found) : found, 1, 1);
  }

 private:
  // `texts`: those of `whole` of at least one byte, where they have a simple expression.
  Part Plain(RegexId whole, RegexId texts = RegexStore::kNothing) {
    Part part;
    part.whole = whole;
    for (auto& row : part.texts) row.fill(texts);
    for (auto& row : part.empty) row.fill(store_.MatchesEmpty(whole));
    return part;
  }

  Part AnyTextPart() {
    const RegexId any = CodePointsAsRegex(store_, CodePointSet::All(), spelling_);
    return Plain(store_.Star(any), store_.Repeat(any, 1, RegexStore::kUnbounded));
  }

  RegexId Texts(const Part& part, size_t s, size_t e) {
    if (part.has_anchor || part.texts[s][e] != RegexStore::kNothing) return part.texts[s][e];
    return part.empty[s][e] ? store_.And({part.whole, store_.Not(RegexStore::kEmpty)}) : part.whole;
  }

  RegexId Whole(const Part& part, size_t s, size_t e) {
    if (!part.has_anchor) return part.whole;
    return part.empty[s][e] ? store_.Optional(part.texts[s][e]) : part.texts[s][e];
  }

  template <typename Function>
  static Part Each(const Function& function) {
    Part part;
    part.has_anchor = true;
    for (size_t s = 0; s < 2; ++s) {
      for (size_t e = 0; e < 2; ++e) function(part.texts[s][e], part.empty[s][e], s, e);
    }
    return part;
  }

  Part Concat(const Part& a, const Part& b) {
    if (!a.has_anchor && !b.has_anchor) {
      if (a.whole == RegexStore::kEmpty) return b;
      if (b.whole == RegexStore::kEmpty) return a;
      return Plain(store_.Concat(a.whole, b.whole));
    }
    return Each([&](RegexId& texts, bool& empty, size_t s, size_t e) {
      std::vector<RegexId> ways = {store_.Concat(Texts(a, s, 0), Texts(b, 0, e))};
      if (a.empty[s][0]) ways.push_back(Texts(b, s, e));
      if (b.empty[0][e]) ways.push_back(Texts(a, s, e));
      texts = store_.Or(std::move(ways));
      empty = a.empty[s][e] && b.empty[s][e];
    });
  }

  Part Or(const std::vector<Part>& parts) {
    bool has_anchor = false;
    std::vector<RegexId> wholes;
    for (const Part& part : parts) {
      has_anchor = has_anchor || part.has_anchor;
      wholes.push_back(part.whole);
    }
    if (!has_anchor) return Plain(store_.Or(std::move(wholes)));
    return Each([&](RegexId& texts, bool& empty, size_t s, size_t e) {
      std::vector<RegexId> ways;
      for (const Part& part : parts) {
        ways.push_back(Texts(part, s, e));
        empty = empty || part.empty[s][e];
      }
      std::ranges::sort(ways);
      ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
      texts = store_.Or(std::move(ways));
    });
  }

  Part Repeat(const Part& part, uint32_t min, uint32_t max) {
    if (!part.has_anchor) {
      const RegexId whole = store_.Repeat(part.whole, min, max);
      if (max == 0 || part.whole == RegexStore::kEmpty) return Plain(whole);
      // The fewest repetitions with a text: one, or as many as there must be if none may be empty.
      const uint32_t low = part.empty[0][0] ? 1 : std::max(min, 1u);
      return Plain(whole, store_.Repeat(Texts(part, 0, 0), low, max));
    }
    if (max == 0) return Plain(RegexStore::kEmpty);
    if (min > 1 || (max != 1 && max != RegexStore::kUnbounded)) {
      throw RequestError("^ and $ are not supported inside a counted repetition");
    }
    return Each([&](RegexId& texts, bool& empty, size_t s, size_t e) {
      texts = Texts(part, s, e);
      if (max != 1) {
        const std::array<RegexId, 3> several = {Texts(part, s, 0), store_.Star(Texts(part, 0, 0)), Texts(part, 0, e)};
        texts = store_.Or({texts, store_.Concat(several)});
      }
      empty = min == 0 || part.empty[s][e];
    });
  }

  Part Of(uint32_t index) {
    const PatternTree::Node& node = tree_.nodes[index];
    switch (node.kind) {
      case Kind::kEmpty:
        return Plain(RegexStore::kEmpty);
      case Kind::kClass:
        return Plain(CodePointsAsRegex(store_, node.set, spelling_));
      case Kind::kSequence: {
        Part part = Plain(RegexStore::kEmpty);
        for (size_t i = node.children.size(); i-- > 0;) part = Concat(Of(node.children[i]), part);
        return part;
      }
      case Kind::kAlternatives: {
        std::vector<Part> parts;
        for (const uint32_t child : node.children) parts.push_back(Of(child));
        return Or(parts);
      }
      case Kind::kRepeat:
        return Repeat(Of(node.children[0]), node.min, node.max);
      case Kind::kStart:
      case Kind::kEnd:
        return Each([&](RegexId& texts, bool& empty, size_t s, size_t e) {
          texts = RegexStore::kNothing;
          empty = (node.kind == Kind::kStart ? s : e) == 1;
        });
      case Kind::kLookahead:
      case Kind::kNegativeLookahead:
        throw RequestError("look-ahead is supported only at the top level of a pattern");
    }
    return Plain(RegexStore::kNothing);
  }

  // Returns `index` followed by `tail`, which ends at the end of the text.
  Part TopLevel(uint32_t index, const Part& tail) {
    const PatternTree::Node& node = tree_.nodes[index];
    // Alternatives repeat the tail, so this is only for those that need it.
    if (!node.has_lookahead) return Concat(Of(index), tail);
    switch (node.kind) {
      case Kind::kSequence: {
        Part part = tail;
        for (size_t i = node.children.size(); i-- > 0;) part = TopLevel(node.children[i], part);
        return part;
      }
      case Kind::kAlternatives: {
        std::vector<Part> parts;
        for (const uint32_t child : node.children) parts.push_back(TopLevel(child, tail));
        return Or(parts);
      }
      case Kind::kLookahead:
      case Kind::kNegativeLookahead: {
        const Part ahead = TopLevel(node.children[0], AnyTextPart());
        const bool negated = node.kind == Kind::kNegativeLookahead;
        return Each([&](RegexId& texts, bool& empty, size_t s, size_t e) {
          RegexId seen = store_.WithEverythingAtEnd(Whole(ahead, s, e), AnyText(store_, spelling_));
          if (negated) seen = store_.Not(seen);
          texts = store_.And({Texts(tail, s, e), seen});
          empty = tail.empty[s][e] && ahead.empty[s][e] != negated;
        });
      }
      default:
        return Concat(Of(index), tail);
    }
  }

  RegexStore& store_;
  const PatternTree& tree_;
  const TextSpelling spelling_;
};

}  // namespace

RegexId ParsePattern(RegexStore& store, std::string_view pattern, PatternSyntax syntax, PatternMatch match,
                     TextSpelling spelling) {
  const PatternTree tree = ParsePatternTree(pattern, syntax);
  return Compiler(store, tree, spelling).Compile(match);
}

}  // namespace vllm
