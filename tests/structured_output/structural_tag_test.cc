// Tests structural tags with the reference matcher.
#include "engine/structured_output/dialects/structural_tag.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/grammar_dialect.h"
#include "tests/structured_output/slow_matcher.h"

namespace vllm {
namespace {

using testing_support::SlowMatcher;

// The special tokens are 1 to 4.
GrammarVocabulary Vocabulary() {
  GrammarVocabulary vocabulary;
  vocabulary.find = [](std::string_view text) -> std::optional<int32_t> {
    if (text == "<think>") return 1;
    if (text == "</think>") return 2;
    if (text == "<call>") return 3;
    return std::nullopt;
  };
  vocabulary.bytes = [](int32_t id) -> std::optional<std::string> {
    if (id > 4) return std::nullopt;
    return id == 0 ? "text" : "";
  };
  vocabulary.special_tokens = {{1, 4}};
  return vocabulary;
}

Grammar GrammarOf(const std::string& tag) {
  GrammarBuilder builder;
  return FinishGrammar(builder, AddStructuralTag(builder, tag, Vocabulary(), {}), "structural tag");
}

std::string Wrapped(const std::string& format) { return R"({"type": "structural_tag", "format": )" + format + "}"; }

std::string ErrorOf(const std::string& tag) {
  try {
    GrammarOf(tag);
    return "";
  } catch (const RequestError& error) {
    return error.what();
  }
}

void ExpectTexts(const std::string& tag, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& rejected) {
  SlowMatcher matcher(GrammarOf(tag));
  for (const std::string& text : accepted) EXPECT_TRUE(matcher.Accepts(text)) << text;
  for (const std::string& text : rejected) EXPECT_FALSE(matcher.Accepts(text)) << text;
}

const std::string kFunctions = R"([
  {"begin": "<function=f>", "content": {"type": "json_schema", "json_schema": {"type": "integer"}}, "end": "</function>"},
  {"begin": "<function=g>", "content": {"type": "regex", "pattern": "[a-c]+"}, "end": "</function>"}])";

std::string TriggeredTags(const std::string& options) {
  return R"({"type": "triggered_tags", "triggers": ["<function="], "tags": )" + kFunctions + options + "}";
}

TEST(StructuralTagTest, TheOlderFormHasStructuresAndTriggers) {
  ExpectTexts(R"({"type": "structural_tag", "triggers": ["<function="], "structures": [
                   {"begin": "<function=f>", "schema": {"type": "integer"}, "end": "</function>"}]})",
              {"", "free <func text", "a<function=f>12</function>b<function=f>3</function>"},
              {"<function=", "<function=g>1</function>", "<function=f>x</function>", "<function=f>1</function"});
}

TEST(StructuralTagTest, FreeTextEndsAtATrigger) {
  ExpectTexts(
      Wrapped(TriggeredTags("")),
      {"", "text", "<functio", "<<function=f>1</function>", "<function=g>abc</function> and <function=f>2</function>"},
      {"<function=", "<function=f>1", "<function=h>", "<function=f>a</function>"});
}

TEST(StructuralTagTest, TagsMayBeRequiredAndLimitedToOne) {
  ExpectTexts(Wrapped(TriggeredTags(R"(, "at_least_one": true)")),
              {"<function=f>1</function>", "<function=f>1</function> text <function=f>2</function>x"},
              {"", "text", "text<function=f>1</function>"});
  ExpectTexts(Wrapped(TriggeredTags(R"(, "stop_after_first": true)")), {"", "text", "text<function=f>1</function>"},
              {"<function=f>1</function>text"});
  ExpectTexts(Wrapped(TriggeredTags(R"(, "at_least_one": true, "stop_after_first": true)")),
              {"<function=f>1</function>"}, {"", "<function=f>1</function><function=f>1</function>"});
  ExpectTexts(Wrapped(TriggeredTags(R"(, "excludes": ["bad"])")), {"ba", "good<function=f>1</function>"},
              {"bad", "bad<function=f>1</function>", "<function=f>1</function>bad"});
}

TEST(StructuralTagTest, OverlappingTriggersFireAtTheFirstEnd) {
  ExpectTexts(Wrapped(R"({"type": "triggered_tags", "triggers": ["ab", "b"], "tags": [
                {"begin": "ab{", "content": {"type": "const_string", "value": "1"}, "end": "}"},
                {"begin": "b[", "content": {"type": "const_string", "value": "2"}, "end": "]"}]})"),
              {"a", "ab{1}", "xb[2]a", "ab[2]"}, {"b", "ab", "b{1}"});
}

TEST(StructuralTagTest, TextInATagEndsAtItsEnd) {
  const std::string tag =
      R"({"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": ["</a>", "</b>"]})";
  ExpectTexts(Wrapped(tag), {"<a></a>", "<a>x</c></b>"}, {"<a>x</a></a>", "<a>x</b></a>", "<a>x"});
  ExpectTexts(Wrapped(R"({"type": "tag", "begin": "[", "content": )" + TriggeredTags("") + R"(, "end": "]"})"),
              {"[a<function=g>b</function>c]"}, {"[a]b<function=g>b</function>]"});
}

TEST(StructuralTagTest, FormatsAreComposed) {
  ExpectTexts(Wrapped(R"({"type": "sequence", "elements": [
                {"type": "const_string", "value": "A"},
                {"type": "optional", "content": {"type": "const_string", "value": "B"}},
                {"type": "plus", "content": {"type": "or", "elements": [{"type": "const_string", "value": "C"},
                                                                      {"type": "const_string", "value": "D"}]}},
                {"type": "star", "content": {"type": "grammar", "grammar": "root ::= \"(\" root? \")\""}},
                {"type": "repeat", "min": 1, "max": 2, "content": {"type": "regex", "pattern": "[0-9]"}}]})"),
              {"ABC1", "ADCD(())()12"}, {"AB1", "AC(", "AC", "AC123"});
}

TEST(StructuralTagTest, TagsHaveSeparators) {
  const std::string tags = R"({"type": "tags_with_separator", "separator": ", ", "tags": )" + kFunctions;
  ExpectTexts(Wrapped(tags + "}"),
              {"", "<function=f>1</function>", "<function=f>1</function>, <function=g>a</function>"},
              {"<function=f>1</function>, ", "x"});
  ExpectTexts(Wrapped(tags + R"(, "at_least_one": true, "stop_after_first": true})"), {"<function=f>1</function>"},
              {"", "<function=f>1</function>, <function=g>a</function>"});
}

TEST(StructuralTagTest, DispatchFollowsPatterns) {
  const std::string rules =
      R"({"type": "dispatch", "rules": [["<f>", {"type": "const_string", "value": "1"}],
                                       ["<g>", {"type": "regex", "pattern": "[a-c]+"}]])";
  ExpectTexts(Wrapped(rules + "}"), {"", "x", "x<f>1y<g>abd"}, {"<f>2", "<g>"});
  ExpectTexts(Wrapped(rules + R"(, "loop": false, "excludes": ["y"]})"), {"x", "x<f>1"}, {"x<f>1y", "y", "x<f>1x"});
}

// Returns the ranges of special tokens in the grammar, in the order of its symbols.
std::vector<std::pair<int32_t, int32_t>> TokensIn(const Grammar& grammar) {
  std::vector<std::pair<int32_t, int32_t>> tokens;
  for (SymbolId i = 0; i < grammar.num_symbols(); ++i) {
    for (const TokenRange& range : grammar.symbol(i).tokens) tokens.emplace_back(range.first, range.last);
  }
  return tokens;
}

TEST(StructuralTagTest, TokensDelimitParts) {
  using Ranges = std::vector<std::pair<int32_t, int32_t>>;
  const Grammar think = GrammarOf(Wrapped(
      R"({"type": "tag", "begin": {"type": "token", "token": "<think>"}, "content": {"type": "any_tokens"},
          "end": {"type": "token", "token": 2}})"));
  EXPECT_EQ(TokensIn(think), (Ranges{{1, 1}, {2, 2}, {1, 1}, {3, 4}}));
  const Grammar calls = GrammarOf(Wrapped(
      R"({"type": "token_triggered_tags", "trigger_tokens": ["<call>"], "exclude_tokens": [4], "tags": [
            {"begin": {"type": "token", "token": "<call>"}, "content": {"type": "const_string", "value": "x"}, "end": ""}]})"));
  EXPECT_EQ(TokensIn(calls), (Ranges{{3, 3}, {1, 2}}));
  const Grammar dispatch = GrammarOf(Wrapped(
      R"({"type": "token_dispatch", "rules": [[1, {"type": "plus", "content": {"type": "exclude_token", "exclude_tokens": [3]}}]]})"));
  EXPECT_EQ(TokensIn(dispatch), (Ranges{{1, 1}, {2, 4}, {1, 2}, {4, 4}}));
}

TEST(StructuralTagTest, MistakesAreReportedWithTheirPlace) {
  EXPECT_EQ(ErrorOf("["), "structural tag: not valid JSON");
  EXPECT_EQ(ErrorOf("[]"), "structural tag: must be an object");
  EXPECT_EQ(ErrorOf("{}"), "structural tag: format: missing");
  EXPECT_EQ(ErrorOf(R"({"format": {"type": "any_text"}, "x": 1})"), "structural tag: x: not supported");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "foo"})")), "structural tag: format.type: foo is not supported");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "sequence", "elements": [{"type": "regex", "pattern": "("}]})")),
            "structural tag: format.elements[0].pattern: missing ) at character 2");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "json_schema", "json_schema": {"type": "foo"}})")),
            "structural tag: format.json_schema: JSON schema: #/type: must be null, boolean, object, array, number, "
            "integer or string");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "json_schema", "json_schema": {}, "style": "qwen_xml"})")),
            "structural tag: format.style: only json is supported");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "grammar", "grammar": "root ::= x"})")),
            "structural tag: format: grammar: the rule x is not defined at line 1, column 10");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "triggered_tags", "triggers": ["<x"], "tags": [
                     {"begin": "<y>", "content": {"type": "any_text"}, "end": ""}]})")),
            "structural tag: format.tags[0]: no trigger is at the start of begin");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "any_text", "excludes": [""]})")),
            "structural tag: format.excludes[0]: must be a text");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "exclude_token"})")),
            "structural tag: format: exclude_token is supported only in plus and star");
  EXPECT_EQ(ErrorOf(Wrapped(R"({"type": "token", "token": "<other>"})")),
            "structural tag: format.token: the model has no token <other>");
  // The tags are used twice, so they have exponentially many paths to the innermost ones.
  std::string twice = R"({"type": "const_string", "value": "x"})";
  for (int i = 0; i < 100; ++i) {
    twice = R"({"type": "tags_with_separator", "separator": ",", "tags": [{"begin": "", "content": )" + twice +
            R"(, "end": ""}]})";
  }
  EXPECT_EQ(ErrorOf(Wrapped(twice)), "");
  std::string deep = R"({"type": "any_text"})";
  for (int i = 0; i < 300; ++i) deep = R"({"type": "star", "content": )" + deep + "}";
  EXPECT_EQ(ErrorOf(Wrapped(deep)), "structural tag: nested too deeply (limit 250)");
  EXPECT_EQ(ErrorOf(std::string(100'000, '[')), "structural tag: nested too deeply (limit 512)");
}

}  // namespace
}  // namespace vllm
