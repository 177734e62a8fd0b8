#include "engine/structured_output/patterns/pattern.h"

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
  // [begins at the start][ends at the end]; texts of at least one byte
  std::array<std::array<RegexId, 2>, 2> texts{};
  // Whether the part has the empty text there. For the empty text, the part begins and ends at the same place.
  std::array<std::array<bool, 2>, 2> empty{};
  bool has_anchor = false;
};

class Compiler {
 public:
  Compiler(RegexStore& store, const PatternTree& tree, TextSpelling spelling)
      : store_(store), tree_(tree), spelling_(spelling) {}

  RegexId Compile(PatternMatch match) {
    const RegexId any = AnyText(store_, spelling_);
    Part tail = Plain(match == PatternMatch::kSearch ? any : RegexStore::kEmpty);
    tail = TopLevel(tree_.root, tail);
    if (match == PatternMatch::kSearch) tail = Concat(Plain(any), tail);
    return Whole(tail, 1, 1);
  }

 private:
  RegexId NonEmpty(RegexId id) {
    return store_.MatchesEmpty(id) ? store_.And({id, store_.Not(RegexStore::kEmpty)}) : id;
  }

  Part Plain(RegexId id) {
    Part part;
    const RegexId texts = NonEmpty(id);
    for (size_t s = 0; s < 2; ++s) {
      for (size_t e = 0; e < 2; ++e) {
        part.texts[s][e] = texts;
        part.empty[s][e] = store_.MatchesEmpty(id);
      }
    }
    return part;
  }

  RegexId Whole(const Part& part, size_t s, size_t e) {
    return part.empty[s][e] ? store_.Optional(part.texts[s][e]) : part.texts[s][e];
  }

  template <typename Function>
  static Part Each(bool has_anchor, const Function& function) {
    Part part;
    part.has_anchor = has_anchor;
    for (size_t s = 0; s < 2; ++s) {
      for (size_t e = 0; e < 2; ++e) function(part.texts[s][e], part.empty[s][e], s, e);
    }
    return part;
  }

  Part Concat(const Part& a, const Part& b) {
    if (!a.has_anchor && !b.has_anchor) return Plain(store_.Concat(Whole(a, 0, 0), Whole(b, 0, 0)));
    return Each(true, [&](RegexId& texts, bool& empty, size_t s, size_t e) {
      std::vector<RegexId> ways = {store_.Concat(a.texts[s][0], b.texts[0][e])};
      if (a.empty[s][0]) ways.push_back(b.texts[s][e]);
      if (b.empty[0][e]) ways.push_back(a.texts[s][e]);
      texts = store_.Or(std::move(ways));
      empty = a.empty[s][e] && b.empty[s][e];
    });
  }

  Part Or(const std::vector<Part>& parts) {
    bool has_anchor = false;
    for (const Part& part : parts) has_anchor = has_anchor || part.has_anchor;
    return Each(has_anchor, [&](RegexId& texts, bool& empty, size_t s, size_t e) {
      std::vector<RegexId> ways;
      for (const Part& part : parts) {
        ways.push_back(part.texts[s][e]);
        empty = empty || part.empty[s][e];
      }
      texts = store_.Or(std::move(ways));
    });
  }

  Part Repeat(const Part& part, uint32_t min, uint32_t max) {
    if (!part.has_anchor) return Plain(store_.Repeat(Whole(part, 0, 0), min, max));
    if (max == 0) return Plain(RegexStore::kEmpty);
    if (min > 1 || (max != 1 && max != RegexStore::kUnbounded)) {
      throw RequestError("^ and $ are not supported inside a counted repetition");
    }
    return Each(true, [&](RegexId& texts, bool& empty, size_t s, size_t e) {
      texts = part.texts[s][e];
      if (max != 1) {
        const std::array<RegexId, 3> several = {part.texts[s][0], store_.Star(part.texts[0][0]), part.texts[0][e]};
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
        return Each(true, [&](RegexId& texts, bool& empty, size_t s, size_t e) {
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
        const Part ahead = TopLevel(node.children[0], Plain(AnyText(store_, spelling_)));
        const bool negated = node.kind == Kind::kNegativeLookahead;
        return Each(true, [&](RegexId& texts, bool& empty, size_t s, size_t e) {
          RegexId seen = Whole(ahead, s, e);
          if (negated) seen = store_.Not(seen);
          texts = store_.And({tail.texts[s][e], seen});
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
