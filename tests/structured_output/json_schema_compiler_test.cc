// Tests which texts the grammar of a JSON Schema generates, compared with the verdicts of Python's jsonschema
// (tests/golden/json_schema_golden.py) and of the JSON-Schema-Test-Suite, and which schemas are rejected.
#include "engine/structured_output/json_schema/schema_compiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
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
  EXPECT_TRUE(integer.Accepts("-12"));
  EXPECT_FALSE(integer.Accepts("1.0"));
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
  EXPECT_TRUE(grammar.Accepts(R"({"ab":null,"a":1,"abc":2,"":3,"b\u0061":4,"a\t":5})"));
  // The key ab, which must be null, with an escape.
  EXPECT_FALSE(grammar.Accepts(R"({"ab":null,"\u0061b":1})"));
  EXPECT_FALSE(grammar.Accepts(R"({"ab":null,"a\u0062":1})"));
  EXPECT_FALSE(grammar.Accepts(R"({"ab":null,"ab":1})"));
}

TEST(JsonSchemaCompilerTest, MembersHaveTheOrderOfTheSchema) {
  GrammarText grammar(R"({"type":"object","properties":{"b":{},"a":{}},"required":["z"],"additionalProperties":true})");
  EXPECT_TRUE(grammar.Accepts(R"({"b":1,"a":2,"z":3,"c":4})"));
  EXPECT_TRUE(grammar.Accepts(R"({"a":2,"z":3})"));
  EXPECT_FALSE(grammar.Accepts(R"({"a":1,"b":2,"z":3})"));
}

TEST(JsonSchemaCompilerTest, AWholeNumberInAnEnumHasNoFraction) {
  GrammarText grammar(R"({"enum":[1.0,2.5,-0.0]})");
  EXPECT_TRUE(grammar.Accepts("1"));
  EXPECT_TRUE(grammar.Accepts("2.5"));
  EXPECT_TRUE(grammar.Accepts("0"));
  EXPECT_FALSE(grammar.Accepts("1.0"));
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

// JSON-Schema-Test-Suite, draft 2020-12 (tests/golden/json_schema_test_suite.py). A schema that is not rejected must give
// each verdict of its group, compact and with line breaks. The groups that are rejected, and why, are those of
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
        EXPECT_EQ(grammar && grammar->Accepts(text), test[2].get<bool>())
            << group["group"] << ": " << test[0] << "\n"
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
  EXPECT_LE(num_rejected * 100, num_groups * 12);
}

}  // namespace
}  // namespace vllm
