// Tests --schema and --json-schema.
#include "app/model/structured_outputs_setting.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

Settings Flags(const std::vector<std::pair<std::string, std::string>>& flags,
               SettingSource source = SettingSource::kCommandLine) {
  Settings settings;
  for (const auto& [name, value] : flags) settings.Set(*FindFlag(name), {value}, source, "--" + name);
  return settings;
}

std::string SchemaOf(const Settings& settings) {
  return ReadStructuredOutputs(settings).value_or(StructuredOutputsParams{"none"}).text;
}

std::string ErrorOf(const Settings& settings) {
  return MessageOf<ConfigError>([&] { ReadStructuredOutputs(settings); });
}

TEST(StructuredOutputsSettingTest, FieldsBecomeAnObjectWithTheseMembers) {
  EXPECT_EQ(SchemaOfFields("name, age int,, tags str[] : a list "),
            R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},)"
            R"("tags":{"type":"array","items":{"type":"string"},"description":"a list"}},)"
            R"("required":["name","age","tags"],"additionalProperties":false})");
  EXPECT_EQ(SchemaOfFields("a float: x, y\nb bool"),
            R"({"type":"object","properties":{"a":{"type":"number","description":"x, y"},"b":{"type":"boolean"}},)"
            R"("required":["a","b"],"additionalProperties":false})");
}

TEST(StructuredOutputsSettingTest, DamagedFieldsAreNamed) {
  const auto error_of = [](const char* fields) { return MessageOf<ConfigError>([&] { SchemaOfFields(fields); }); };
  EXPECT_EQ(error_of("a text"), "--schema: a: unknown type text");
  EXPECT_EQ(error_of("a, a int"), "--schema: two fields have the same name (a)");
  EXPECT_EQ(error_of(": x"), "--schema: a field has no name (: x)");
  EXPECT_EQ(error_of(" , "), "--schema: names no field");
  EXPECT_EQ(error_of("a, b.json"), "--schema: b.json is not the name of a field");
  EXPECT_EQ(error_of("schemas/a"), "--schema: schemas/a is not the name of a field");
}

TEST(StructuredOutputsSettingTest, AJsonSchemaIsTextOrAFile) {
  const TempDirectory temp;
  const std::string path = temp.Write("schema.json", R"({"type":"null"})");
  EXPECT_EQ(SchemaOf(Flags({{"json-schema", path}})), R"({"type":"null"})");
  EXPECT_EQ(SchemaOf(Flags({{"json-schema", R"( {"type":"null"})"}})), R"( {"type":"null"})");
  EXPECT_EQ(SchemaOf(Flags({{"schema", R"({"type":"null"})"}})), R"({"type":"null"})");
  EXPECT_EQ(SchemaOf(Flags({})), "none");
  EXPECT_EQ(SchemaOf(Flags({{"schema", " "}})), "none");
  EXPECT_EQ(SchemaOf(Flags({{"json-schema", "off"}})), "none");
}

TEST(StructuredOutputsSettingTest, TheSourceOfHigherPrecedenceCounts) {
  EXPECT_EQ(ErrorOf(Flags({{"schema", "a"}, {"json-schema", "{}"}})),
            "--schema and --json-schema: set only one of them");
  Settings settings = Flags({{"schema", "a"}}, SettingSource::kPreset);
  settings.Set(*FindFlag("json-schema"), {"{}"}, SettingSource::kCommandLine, "--json-schema");
  EXPECT_EQ(SchemaOf(settings), "{}");
  settings.Set(*FindFlag("schema"), {""}, SettingSource::kChat, "/set schema");
  EXPECT_EQ(SchemaOf(settings), "none");
}

TEST(StructuredOutputsSettingTest, ErrorsOfTheSchemaAreFoundBeforeTheModelIsLoaded) {
  EXPECT_EQ(ErrorOf(Flags({{"json-schema", R"({"items":{"pattern":"("}})"}})),
            "--json-schema: JSON schema: #/items/pattern: missing ) at character 2");
  EXPECT_EQ(ErrorOf(Flags({{"regex", "[a"}})), "--regex: regex: missing ] at character 3");
}

TEST(StructuredOutputsSettingTest, EachKindHasAFlag) {
  using Kind = StructuredOutputsParams::Kind;
  const TempDirectory temp;
  const std::string grammar = temp.Write("list.gbnf", "root ::= \"a\"");
  EXPECT_TRUE(ReadStructuredOutputs(Flags({{"regex", "a+"}})) == (StructuredOutputsParams{"a+", Kind::kRegex}));
  EXPECT_TRUE(ReadStructuredOutputs(Flags({{"grammar", grammar}})) ==
              (StructuredOutputsParams{"root ::= \"a\"", Kind::kGrammar}));
  EXPECT_TRUE(ReadStructuredOutputs(Flags({{"json-object", "true"}})) == StructuredOutputsParams{kAnyJsonObject});
  EXPECT_EQ(SchemaOf(Flags({{"schema-multi", "a"}})),
            R"({"type":"object","properties":{"items":{"type":"array","items":{"type":"object","properties":)"
            R"({"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}},"required":["items"],)"
            R"("additionalProperties":false})");
  const StructuredOutputsParams flexible =
      ReadStructuredOutputs(Flags({{"schema", "a"}, {"any-order", "true"}, {"json-whitespace", "flexible"}})).value();
  EXPECT_TRUE(flexible.any_order && flexible.flexible_whitespace);
}

// In a chat, the last constraint that was set counts.
TEST(StructuredOutputsSettingTest, SettingOneSwitchesOffTheOthersOfTheSameSource) {
  Settings settings = Flags({{"schema", "a"}, {"json-object", "true"}, {"choice", "x"}}, SettingSource::kChat);
  settings.Set(*FindFlag("regex"), {"b"}, SettingSource::kChat, "/set regex");
  SwitchOffOthers("regex", SettingSource::kChat, settings);
  EXPECT_EQ(SchemaOf(settings), "b");
}

}  // namespace
}  // namespace vllm::app
