// Tests which texts the grammar of a JSON Schema generates, compared with the verdicts of Python's jsonschema
// (tests/golden/json_schema_golden.py) and of the JSON-Schema-Test-Suite, and which schemas are rejected.
#include "engine/structured_output/json_schema/schema_compiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/structured_output/json_schema/number_text.h"
#include "engine/structured_output/json_schema/schema_document.h"
#include "tests/structured_output/grammar_text.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using testing_support::GrammarText;
using Json = nlohmann::ordered_json;

std::string ErrorOf(std::string_view schema) {
  return MessageOf<RequestError>([&] { CompileJsonSchema(schema); });
}

// A number of enum has one spelling, without an exponent.
std::string WithoutExponent(std::string text) {
  for (size_t at = 0; (at = text.find("1.5e-07", at)) != std::string::npos;) text.replace(at, 7, "0.00000015");
  return text;
}

TEST(JsonSchemaCompilerTest, VerdictsAreThoseOfPythonsJsonschema) {
  std::ifstream file(VLLMCLI_TEST_DATA "/json_schema_golden.jsonl");
  std::string line;
  size_t num_texts = 0;
  while (std::getline(file, line)) {
    const Json golden = Json::parse(line);
    const std::string schema = golden["schema"].dump();
    // Such schemas have no defined meaning.
    if (ErrorOf(schema).ends_with("refers to itself without an object or array between")) continue;
    if (golden["valid"].empty() && ErrorOf(schema) == "JSON schema: #: allows no value") continue;
    GrammarText grammar(schema);
    for (const Json& text : golden["valid"]) {
      EXPECT_TRUE(grammar.Accepts(WithoutExponent(text.get<std::string>()))) << schema << "\n" << text;
      ++num_texts;
    }
    for (const Json& text : golden["invalid"]) {
      EXPECT_FALSE(grammar.Accepts(text.get<std::string>())) << schema << "\n" << text;
      ++num_texts;
    }
  }
  EXPECT_GT(num_texts, 3000u);
}

TEST(JsonSchemaCompilerTest, StringsAreUtf8WithTheEscapesOfJson) {
  GrammarText grammar(R"({"type":"string"})");
  for (const char* text :
       {R"("")", R"("é日😀")", R"("\"\\\/\b\f\n\r\t")", R"("\u00e9\uD83D\ude00\ud7FF\uE000")", "\"\x7F\""}) {
    EXPECT_TRUE(grammar.Accepts(text)) << text;
  }
  // An unpaired surrogate, a control character, an overlong sequence, an encoded surrogate, a value above 10FFFF, half
  // a character, an unknown escape.
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud83dx")", "\"\n\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"", "\"\xE6\x97\"", R"("\x41")", R"("\u12")", "\"a", "a\""}) {
    EXPECT_FALSE(grammar.Accepts(text)) << text;
  }
}

TEST(JsonSchemaCompilerTest, NumbersAreThoseOfJson) {
  GrammarText number(R"({"type":"number"})");
  for (const char* text : {"0", "-0", "10", "-1.50", "1e5", "1E+05", "0.1e-9"})
    EXPECT_TRUE(number.Accepts(text)) << text;
  for (const char* text : {"", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN"}) {
    EXPECT_FALSE(number.Accepts(text)) << text;
  }
  GrammarText integer(R"({"type":"integer"})");
  for (const char* text : {"-12", "0", "1.0", "-12.000", "1e5", "2E+3"}) EXPECT_TRUE(integer.Accepts(text)) << text;
  for (const char* text : {"1.5", "1.", "1e-5", "1.0e5", "01"}) EXPECT_FALSE(integer.Accepts(text)) << text;
}

TEST(JsonSchemaCompilerTest, NumbersWithBoundsMayHaveAnExponent) {
  GrammarText positive(R"({"type":"number","minimum":0})");
  for (const char* text : {"1e-06", "2.5E+300", "0e1"}) EXPECT_TRUE(positive.Accepts(text)) << text;
  EXPECT_FALSE(positive.Accepts("-1e-06"));
  GrammarText small(R"({"type":"number","exclusiveMinimum":-0.001,"maximum":0.0025})");
  for (const char* text : {"2.5e-3", "2.4999E-03", "9e-99", "-9.99e-04", "1e-4"}) {
    EXPECT_TRUE(small.Accepts(text)) << text;
  }
  for (const char* text : {"2.5e-2", "2.51e-3", "3e-03", "-1e-3", "1e-100", "0e-1", "10e-5", "1e1"}) {
    EXPECT_FALSE(small.Accepts(text)) << text;
  }
  GrammarText cents(R"({"type":"number","multipleOf":0.01})");
  EXPECT_TRUE(cents.Accepts("2e-02"));
  EXPECT_TRUE(cents.Accepts("2.5e-1"));
  EXPECT_FALSE(cents.Accepts("2.5e-02"));
  GrammarText whole(R"({"type":"integer","minimum":3})");
  EXPECT_TRUE(whole.Accepts("3.0"));
  EXPECT_FALSE(whole.Accepts("2.0"));
}

TEST(JsonSchemaCompilerTest, MultiplesOfALargeIntegerAreIntegers) {
  GrammarText multiples(R"({"type":"number","multipleOf":3999999})");
  for (const char* text : {"0", "7999998", "-3999999", "3999999.0"}) EXPECT_TRUE(multiples.Accepts(text)) << text;
  for (const char* text : {"1", "7999999", "3999999.5", "0.5"}) EXPECT_FALSE(multiples.Accepts(text)) << text;
}

// Whether a multiple can follow some digits is found without a search among as many states as the divisor is large.
TEST(JsonSchemaCompilerTest, MultiplesOfALargeDecimalNeedNoSearch) {
  GrammarText multiples(R"({"type":"number","multipleOf":1077.753})");
  for (const char* text : {"0", "1077.753", "-2155.506", "1077753", "1077753.000", "10777.53"}) {
    EXPECT_TRUE(multiples.Accepts(text)) << text;
  }
  for (const char* text : {"1", "1077.754", "1077.75", "1077.7531"}) EXPECT_FALSE(multiples.Accepts(text)) << text;
  RegexStore store;
  std::mt19937 random(1);
  for (const char* divisor : {"1077.753", "0.9999991", "7654.321", "12345.67", "0.0625", "999983"}) {
    const RegexId all = *MultiplesOf(store, *ParseDecimal(divisor));
    store.LimitSteps(100'000);
    for (int round = 0; round < 20; ++round) {
      RegexId rest = all;
      for (int i = 0; i < 24 && rest != RegexStore::kNothing; ++i) {
        EXPECT_FALSE(store.IsNothing(rest)) << divisor;
        const RegexId next = store.Derivative(rest, static_cast<uint8_t>("0123456789."[random() % 11]));
        if (next != RegexStore::kNothing && !store.IsNothing(next)) rest = next;
      }
    }
  }
}

// A model that may always write another digit might never end.
TEST(JsonSchemaCompilerTest, NumbersHaveLimitedDigits) {
  const std::string digits(32, '9');
  GrammarText number(R"({"type":"number"})");
  EXPECT_TRUE(number.Accepts(digits + "." + digits + "e-999"));
  EXPECT_FALSE(number.Accepts(digits + "9"));
  EXPECT_FALSE(number.Accepts("0." + digits + "9"));
  EXPECT_FALSE(number.Accepts("1e1000"));
  GrammarText integer(R"({"type":"integer"})");
  EXPECT_TRUE(integer.Accepts("-" + digits));
  EXPECT_FALSE(integer.Accepts(digits + "9"));
  EXPECT_TRUE(integer.Accepts("1." + std::string(20, '0')));
  EXPECT_FALSE(integer.Accepts("1." + std::string(21, '0')));
  GrammarText above(R"({"type":"number","minimum":5})");
  EXPECT_TRUE(above.Accepts(digits));
  EXPECT_FALSE(above.Accepts(digits + "9"));
  GrammarText huge(R"({"type":"integer","minimum":1e40})");
  EXPECT_TRUE(huge.Accepts("1" + std::string(40, '0')));
  EXPECT_FALSE(huge.Accepts("1" + std::string(64, '0')));
  GrammarText listed(R"({"enum":[1e35]})");
  EXPECT_TRUE(listed.Accepts("1" + std::string(35, '0')));
}

TEST(JsonSchemaCompilerTest, ListedStringsHaveOneSpelling) {
  GrammarText grammar(R"({"enum":["a","b\n","é"],"not":{"const":"a"}})");
  EXPECT_TRUE(grammar.Accepts(R"("b\n")"));
  EXPECT_TRUE(grammar.Accepts(R"("é")"));
  EXPECT_FALSE(grammar.Accepts(R"("a")"));
  EXPECT_FALSE(grammar.Accepts(R"("b\u000a")"));
  // A set that is not only a list.
  GrammarText mixed(R"({"anyOf":[{"enum":["a"]},{"type":"string","pattern":"^x*$"}]})");
  EXPECT_TRUE(mixed.Accepts(R"("xx")"));
  EXPECT_TRUE(mixed.Accepts(R"("a")"));
  EXPECT_FALSE(mixed.Accepts(R"("b")"));
}

TEST(JsonSchemaCompilerTest, LengthsAreIntersectedAndExcludedByTheirBounds) {
  GrammarText grammar(
      R"({"type":"string","minLength":1,"allOf":[{"maxLength":9},{"not":{"minLength":3,"maxLength":4}}]})");
  for (const char* text : {R"("a")", R"("\u003ab")", R"("abcde")", R"("abcdefghi")"}) {
    EXPECT_TRUE(grammar.Accepts(text)) << text;
  }
  for (const char* text : {R"("")", R"("abc")", R"("日本\n語")", R"("abcdefghij")"}) {
    EXPECT_FALSE(grammar.Accepts(text)) << text;
  }
}

TEST(JsonSchemaCompilerTest, AForbiddenPatternMayOccurNowhere) {
  GrammarText grammar(R"({"type":"string","pattern":"ab","not":{"anyOf":[{"pattern":"!"},{"pattern":"^.{9}"}]}})");
  EXPECT_TRUE(grammar.Accepts(R"("ab")"));
  EXPECT_TRUE(grammar.Accepts(R"("--ab\u002d--")"));
  for (const char* text : {R"("ab!")", R"("ab\u0021")", R"("-ab------")", R"("a")"}) {
    EXPECT_FALSE(grammar.Accepts(text)) << text;
  }
}

TEST(JsonSchemaCompilerTest, ALeapSecondIsTheLastOfADayInUtc) {
  GrammarText time(R"({"type":"string","format":"time"})");
  for (const char* text : {R"("23:59:60Z")", R"("23:59:60.5+00:00")", R"("00:29:60+00:30")", R"("15:59:60-08:00")",
                           R"("07:59:60+08:00")"}) {
    EXPECT_TRUE(time.Accepts(text)) << text;
  }
  for (const char* text : {R"("22:59:60Z")", R"("23:59:60+01:00")", R"("23:59:61Z")", R"("24:00:60+00:01")"}) {
    EXPECT_FALSE(time.Accepts(text)) << text;
  }
}

TEST(JsonSchemaCompilerTest, LengthsCountCodePoints) {
  GrammarText grammar(R"({"type":"string","minLength":2,"maxLength":2})");
  EXPECT_TRUE(grammar.Accepts("\"日\\ud83d\\ude00\""));
  EXPECT_FALSE(grammar.Accepts("\"日\""));
  EXPECT_FALSE(grammar.Accepts("\"日本語\""));
}

TEST(JsonSchemaCompilerTest, AnotherKeyIsNotSpelledLikeADeclaredOne) {
  GrammarText grammar(
      R"({"properties":{"ab":{"type":"null"},"a\n":true},"required":["ab"],"additionalProperties":{"type":"integer"}})");
  EXPECT_TRUE(grammar.Accepts(R"({"ab":null,"a":1,"abc":2,"":3,"a\u003a":4,"a\t":5})"));
  EXPECT_FALSE(grammar.Accepts(R"({"ab":null,"ab":1})"));
  // The key a: must be null, also with an escape.
  GrammarText escaped(R"({"properties":{"a:":{"type":"null"}},"additionalProperties":{"type":"integer"}})");
  EXPECT_TRUE(escaped.Accepts(R"({"a;":1})"));
  EXPECT_FALSE(escaped.Accepts(R"({"a:":1})"));
  EXPECT_FALSE(escaped.Accepts(R"({"a\u003a":1})"));
}

TEST(JsonSchemaCompilerTest, MembersHaveTheOrderOfTheSchema) {
  GrammarText grammar(R"({"type":"object","properties":{"b":{},"a":{}},"required":["z"],"additionalProperties":true})");
  EXPECT_TRUE(grammar.Accepts(R"({"b":1,"a":2,"z":3,"c":4})"));
  EXPECT_TRUE(grammar.Accepts(R"({"a":2,"z":3})"));
  EXPECT_FALSE(grammar.Accepts(R"({"a":1,"b":2,"z":3})"));
}

TEST(JsonSchemaCompilerTest, AListedNumberMayHaveTheFractionThatTheSchemaWrites) {
  GrammarText grammar(R"({"enum":[1.0,2.5,-0.0,3]})");
  EXPECT_TRUE(grammar.Accepts("1"));
  EXPECT_TRUE(grammar.Accepts("2.5"));
  EXPECT_TRUE(grammar.Accepts("0"));
  EXPECT_TRUE(grammar.Accepts("1.0"));
  EXPECT_TRUE(grammar.Accepts("3"));
  EXPECT_FALSE(grammar.Accepts("3.0"));
  EXPECT_FALSE(grammar.Accepts("2.50"));
  EXPECT_FALSE(grammar.Accepts("1.5"));
  EXPECT_FALSE(grammar.Accepts("2"));
}

TEST(JsonSchemaCompilerTest, OlderDraftsHaveTheirOwnKeywords) {
  const auto grammar = [](const std::string& draft, const std::string& keywords) {
    return GrammarText(R"({"$schema":"http://json-schema.org/draft-)" + draft + R"(/schema#",)" + keywords + "}");
  };
  const std::string reference =
      R"("definitions":{"a":{"type":"integer"}},"properties":{"b":{"$ref":"#/definitions/a","maximum":3}})";
  EXPECT_TRUE(grammar("07", reference).Accepts(R"({"b":5})"));
  EXPECT_FALSE(grammar("07", reference).Accepts(R"({"b":"x"})"));
  EXPECT_FALSE(GrammarText("{" + reference + "}").Accepts(R"({"b":5})"));
  EXPECT_TRUE(grammar("04", R"("type":"string","const":"a")").Accepts(R"("b")"));
  EXPECT_FALSE(grammar("06", R"("type":"string","const":"a")").Accepts(R"("b")"));
  EXPECT_TRUE(grammar("06", R"("type":"integer")").Accepts("2.0"));
  EXPECT_FALSE(grammar("04", R"("type":"integer")").Accepts("2.0"));
  EXPECT_FALSE(grammar("04", R"("type":"integer","minimum":1)").Accepts("2.0"));
  EXPECT_TRUE(grammar("04", R"("type":"number","maximum":100)").Accepts("2.0"));
  EXPECT_TRUE(grammar("04", R"("type":"number","multipleOf":1)").Accepts("2.0"));
}

TEST(JsonSchemaCompilerTest, KeywordsThatTheDraftIgnoresAreWarnings) {
  std::vector<std::string> warnings;
  CompileJsonSchema(
      R"({"$schema":"http://json-schema.org/draft-04/schema#","const":1,"properties":{"a":{"$ref":"#","type":"null"}}})",
      {}, &warnings);
  EXPECT_EQ(warnings, (std::vector<std::string>{"JSON schema: const is not a keyword of draft 4",
                                                "JSON schema: draft 4 ignores type next to $ref"}));
}

TEST(JsonSchemaCompilerTest, ReferencesMayRecurse) {
  GrammarText list(
      R"({"$defs":{"n/~":{"type":"array","items":{"$ref":"#/$defs/n~1~0"},"maxItems":2}},"$ref":"#/$defs/n~1~0"})");
  EXPECT_TRUE(list.Accepts("[[],[[],[]]]"));
  EXPECT_FALSE(list.Accepts("[[],[],[]]"));
  GrammarText tree(R"({"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false})");
  EXPECT_TRUE(tree.Accepts(R"({"next":{"next":{}}})"));
  EXPECT_FALSE(tree.Accepts(R"({"next":{"next":1}})"));
}

TEST(JsonSchemaCompilerTest, NestingIsLimited) {
  GrammarText grammar("{\"type\":\"array\"}");
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(grammar.Accepts(nested(RowStore::kMaxDepth)));
  EXPECT_EQ(MessageOf<GrammarLimitError>([&] { grammar.Accepts(nested(RowStore::kMaxDepth + 2)); }),
            "the text is nested too deeply (more than 512 levels)");
}

TEST(JsonSchemaCompilerTest, OneOfDistinguishesObjectsByTheKeysThatOnlyOneAllows) {
  GrammarText grammar(R"({"oneOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},
                                   {"type":"object","properties":{"b":{}},"additionalProperties":{"type":"null"}}]})");
  EXPECT_TRUE(grammar.Accepts(R"({"a":1})"));
  EXPECT_TRUE(grammar.Accepts(R"({"b":1})"));
  EXPECT_TRUE(grammar.Accepts(R"({"b":1,"a":null})"));
  EXPECT_TRUE(grammar.Accepts(R"({"c":null})"));
  // Both, or none.
  EXPECT_FALSE(grammar.Accepts("{}"));
  EXPECT_FALSE(grammar.Accepts(R"({"a":null})"));
  EXPECT_FALSE(grammar.Accepts(R"({"a":1,"b":1})"));
}

TEST(JsonSchemaCompilerTest, AForbiddenRuleOfKeysNeedsOneOfTheKeys) {
  GrammarText grammar(
      R"({"type":"object","maxProperties":2,"not":{"patternProperties":{"^x":false},"required":["a"]},"required":["a"]})");
  EXPECT_TRUE(grammar.Accepts(R"({"a":1,"xy":2})"));
  EXPECT_FALSE(grammar.Accepts(R"({"a":1})"));
  EXPECT_FALSE(grammar.Accepts(R"({"a":1,"y":2})"));
  // After this, there would be no room for the key that is needed.
  EXPECT_FALSE(grammar.Accepts(R"({"a":1,"y":2,"xy":3})"));
}

TEST(JsonSchemaCompilerTest, APropertyIsEvaluatedByTheBranchesThatMatch) {
  GrammarText grammar(R"({"type":"object","properties":{"a":{}},"unevaluatedProperties":false,
                          "anyOf":[{"properties":{"b":{"type":"null"}},"required":["b"]},
                                   {"properties":{"c":{"type":"null"}},"required":["c"]},true]})");
  EXPECT_TRUE(grammar.Accepts("{}"));
  EXPECT_TRUE(grammar.Accepts(R"({"a":1,"b":null,"c":null})"));
  EXPECT_FALSE(grammar.Accepts(R"({"b":1})"));
  EXPECT_FALSE(grammar.Accepts(R"({"b":null,"c":1})"));
  EXPECT_FALSE(grammar.Accepts(R"({"d":1})"));
}

TEST(JsonSchemaCompilerTest, ItemsThatContainsMatchesAreEvaluated) {
  GrammarText grammar(
      R"({"type":"array","prefixItems":[{}],"contains":{"type":"null"},"unevaluatedItems":{"type":"boolean"}})");
  EXPECT_TRUE(grammar.Accepts("[1,null,true]"));
  EXPECT_FALSE(grammar.Accepts("[1,null,1]"));
  EXPECT_FALSE(grammar.Accepts("[1,true]"));
}

TEST(JsonSchemaCompilerTest, ADynamicReferenceDependsOnWhereItIsReached) {
  GrammarText grammar(
      R"({"$id":"https://x.example/root","$ref":"list","$defs":{"text":{"$dynamicAnchor":"item","type":"string"},
          "list":{"$id":"list","type":"array","items":{"$dynamicRef":"#item"},
                  "$defs":{"any":{"$dynamicAnchor":"item"}}}}})");
  EXPECT_TRUE(grammar.Accepts(R"(["a"])"));
  EXPECT_FALSE(grammar.Accepts("[1]"));
}

TEST(JsonSchemaCompilerTest, UniqueItemsMayBeATuple) {
  GrammarText grammar(
      R"({"type":"array","prefixItems":[{"enum":["a","b"]},{"enum":["b",1]}],"items":false,"uniqueItems":true})");
  EXPECT_TRUE(grammar.Accepts("[]"));
  EXPECT_TRUE(grammar.Accepts(R"(["b",1])"));
  EXPECT_TRUE(grammar.Accepts(R"(["a","b"])"));
  EXPECT_FALSE(grammar.Accepts(R"(["b","b"])"));
  EXPECT_FALSE(grammar.Accepts(R"([1,"b"])"));
}

TEST(JsonSchemaCompilerTest, AShortTextIsFoundNextToALongLimit) {
  GrammarText grammar(
      R"_({"type":"string","minLength":1,"maxLength":5000,"pattern":"^$|(^(?:\\S+\\s+){0,99}\\S+$)"})_");
  EXPECT_TRUE(grammar.Accepts(R"("a b")"));
  EXPECT_FALSE(grammar.Accepts(R"("")"));
}

TEST(JsonSchemaCompilerTest, RejectedSchemasAreNamedByJsonPointer) {
  EXPECT_EQ(ErrorOf(R"({"properties":{"a/b":{"items":{"pattern":"(?<=a)x"}}}})"),
            "JSON schema: #/properties/a~1b/items/pattern: look-behind is not supported at character 3");
  EXPECT_EQ(ErrorOf(R"({"anyOf":[{"type":"null"},{"oneOf":[]}]})"),
            "JSON schema: #/anyOf/1/oneOf: must be a list of at least one schema");
  EXPECT_EQ(ErrorOf(R"({"$ref":"#/$defs/x"})"),
            "JSON schema: #/$ref: refers to nothing in this schema (#/$defs/x); other documents are not loaded");
  EXPECT_EQ(ErrorOf(R"({"allOf":[{"$ref":"#"}]})"),
            "JSON schema: #: refers to itself without an object or array between");
  EXPECT_EQ(ErrorOf(R"({"type":"text"})"),
            "JSON schema: #/type: must be null, boolean, object, array, number, integer or string");
  EXPECT_EQ(ErrorOf(R"({"type":"array","minItems":2000000})"),
            "JSON schema: #/minItems: too large (2000000, limit 1000000)");
  EXPECT_EQ(ErrorOf(R"({"type":"string","minLength":-1})"),
            "JSON schema: #/minLength: must be a whole number of at least 0");
  EXPECT_EQ(ErrorOf(R"({"type":"array","uniqueItems":true})"),
            "JSON schema: #: needs what is not supported: uniqueItems for elements that are not a few scalar values");
  EXPECT_EQ(ErrorOf(R"({"not":{"type":"array","uniqueItems":true}})"),
            "JSON schema: #/not: needs what is not supported: the opposite of uniqueItems");
  EXPECT_EQ(ErrorOf("[]"), "JSON schema: #: must be an object or a boolean");
  EXPECT_EQ(ErrorOf("false"), "JSON schema: #: allows no value");
  EXPECT_EQ(ErrorOf(R"({"type":"array","items":false,"minItems":1})"), "JSON schema: #: allows no value");
  EXPECT_EQ(ErrorOf(R"({"type":"integer","minimum":0.1,"maximum":0.9})"), "JSON schema: #: allows no value");
  // An object that must contain itself.
  EXPECT_EQ(ErrorOf(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})"),
            "JSON schema: #: allows no value");
  EXPECT_TRUE(ErrorOf("{\"type\":").starts_with("JSON schema: not JSON: parse error at line 1, column 9"));
  EXPECT_EQ(ErrorOf(std::string(200, '[')), "JSON schema: #: nested too deeply (limit 128 levels)");
  std::string members = R"({"type":"string","x":{"0":0)";
  for (size_t i = 1; i <= SchemaDocument::kMaxMembers; ++i) members += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(ErrorOf(members + "}}"), "JSON schema: #: objects with too many members (limit 20000 in one object)");
  EXPECT_EQ(ErrorOf(std::string(SchemaDocument::kMaxBytes + 1, ' ')),
            "JSON schema: #: too long (4194305 bytes, limit 4194304)");
}

TEST(JsonSchemaCompilerTest, UnknownKeywordsAndAnnotationsAreIgnored) {
  GrammarText grammar(
      R"({"type":"null","title":"t","description":"d","default":1,"x-ui":{"pattern":1},"uniqueItems":false})");
  EXPECT_TRUE(grammar.Accepts("null"));
  EXPECT_FALSE(grammar.Accepts("1"));
}

// Returns `data` with whole numbers written without a fraction, which is their only spelling.
Json Canonical(Json data) {
  if (data.is_number_float() && std::abs(data.get<double>()) <= 9007199254740992.0 &&
      data.get<double>() == static_cast<double>(static_cast<int64_t>(data.get<double>()))) {
    return static_cast<int64_t>(data.get<double>());
  }
  if (data.is_structured()) {
    for (Json& element : data) element = Canonical(std::move(element));
  }
  return data;
}

// JSON-Schema-Test-Suite, draft 2020-12 (tests/golden/json_schema_test_suite.py). A schema that is not rejected must
// give each verdict of its group, compact and with line breaks. The groups that are rejected, and why, are those of
// json_schema_rejected.txt, which changes with the program: set VLLMCLI_WRITE_GOLDEN to write it again. The test allows
// any order of members, which the suite does not think about.
TEST(JsonSchemaCompilerTest, VerdictsAreThoseOfTheTestSuite) {
  std::ifstream file(VLLMCLI_TEST_DATA "/json_schema_test_suite.jsonl");
  std::ostringstream rejected;
  std::string line;
  size_t num_groups = 0;
  size_t num_rejected = 0;
  while (std::getline(file, line)) {
    const Json group = Json::parse(line);
    const std::string schema = group["schema"].dump();
    const std::string error = ErrorOf(schema);
    const bool allows_nothing = error.ends_with(": allows no value");
    ++num_groups;
    if (!error.empty() && !allows_nothing) {
      ++num_rejected;
      rejected << group["group"].get<std::string>() << "\n  " << error << "\n";
      continue;
    }
    for (const bool flexible : {false, true}) {
      std::optional<GrammarText> grammar;
      if (!allows_nothing) {
        grammar.emplace(schema, JsonSchemaOptions{.any_order = true, .flexible_whitespace = flexible});
      }
      for (const Json& test : group["tests"]) {
        const std::string text = Canonical(test[1]).dump(flexible ? 2 : -1);
        EXPECT_EQ(grammar && grammar->Accepts(text), test[2].get<bool>()) << group["group"] << ": " << test[0] << "\n"
                                                                          << schema << "\n"
                                                                          << text;
      }
    }
  }
  const std::string path = VLLMCLI_TEST_DATA "/json_schema_rejected.txt";
  if (std::getenv("VLLMCLI_WRITE_GOLDEN") != nullptr) std::ofstream(path) << rejected.str();
  std::ifstream golden(path);
  EXPECT_EQ(rejected.str(), std::string(std::istreambuf_iterator<char>(golden), {}));
  EXPECT_EQ(num_groups, 380u);
  EXPECT_LE(num_rejected * 100, num_groups * 8);
}

}  // namespace
}  // namespace vllm
