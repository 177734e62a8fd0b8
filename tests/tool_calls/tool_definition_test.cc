// Tests ParseToolDefinitions and the types that ToolSet finds in schemas.
#include "engine/tool_calls/syntax/tool_definition.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "engine/tool_calls/call_id.h"
#include "tests/tool_calls/call_text.h"

namespace vllm {
namespace {

std::string ErrorOf(std::string_view json) {
  try {
    ParseToolDefinitions(json);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "";
}

TEST(ToolDefinitionTest, BothFormsAreRead) {
  const std::vector<ToolDefinition> tools = ParseToolDefinitions(
      R"([{"type": "function", "function": {"name": "f", "description": "D", "parameters": {"type":  "object"},
           "strict": true}}, {"name": "g"}])");
  ASSERT_EQ(tools.size(), 2u);
  EXPECT_EQ(tools[0], (ToolDefinition{"f", "D", R"({"type":  "object"})", true}));
  EXPECT_EQ(tools[1], (ToolDefinition{"g", "", "{}", false}));
  EXPECT_TRUE(ParseToolDefinitions("[]").empty());
}

TEST(ToolDefinitionTest, ErrorsNameTheTool) {
  EXPECT_EQ(ErrorOf("{}"), "tools: must be a JSON array");
  EXPECT_EQ(ErrorOf("[1]"), "tools[0]: must be a JSON object");
  EXPECT_EQ(ErrorOf(R"([{"type": "function", "function": {}}])"), "tools[0]: name is missing");
  EXPECT_EQ(ErrorOf(R"([{"type": "search", "function": {"name": "f"}}])"),
            "tools[0]: type must be \"function\" (search)");
  EXPECT_EQ(ErrorOf(R"([{"name": "f"}, {"name": "f"}])"), "tools[1] (f): another tool has this name");
  EXPECT_EQ(ErrorOf(R"([{"name": "f", "parameters": []}])"), "tools[0] (f): parameters must be a JSON object");
  EXPECT_EQ(ErrorOf(R"([{"name": "a b"}])"),
            "tools[0]: name must be 1 to 128 letters, digits and characters of \"_-./:\" (a b)");
  EXPECT_NE(ErrorOf(R"([{"name": "f", "parameters": {"a": 01}}])").find("tools[0] (f)"), std::string::npos);
  EXPECT_NE(ErrorOf(R"([{"name": "f"})"), "");
}

TEST(ToolDefinitionTest, LimitsAreEnforced) {
  std::string deep = "[{\"name\": \"f\", \"parameters\": ";
  for (int i = 0; i < 100; ++i) deep += "{\"a\":";
  EXPECT_NE(ErrorOf(deep), "");
  EXPECT_EQ(ErrorOf(std::string(kMaxToolsBytes + 1, ' ')), "tools: larger than 1048576 bytes");
  std::string many = "[";
  for (size_t i = 0; i <= kMaxTools; ++i)
    many += std::string(i == 0 ? "" : ",") + R"({"name":"f)" + std::to_string(i) + "\"}";
  EXPECT_EQ(ErrorOf(many + "]"), "tools: more than 1024 tools");
}

TEST(ToolSetTest, TypesOfParametersAreFound) {
  const auto tools = testing_support::TestTools();
  EXPECT_EQ(tools->ParameterTypes("get_weather", "city"), kJsonString);
  EXPECT_EQ(tools->ParameterTypes("get_weather", "unit"), kJsonString);
  EXPECT_EQ(tools->ParameterTypes("get_weather", "days"), kJsonInteger);
  EXPECT_EQ(tools->ParameterTypes("get_weather", "note"), kJsonString | kJsonNull);
  EXPECT_EQ(tools->ParameterTypes("send-mail.v2", "body"), kJsonString);
  EXPECT_EQ(tools->ParameterTypes("send-mail.v2", "to"), kJsonString | kJsonArray);
  EXPECT_EQ(tools->ParameterTypes("get_weather", "unknown"), kAnyJsonType);
  EXPECT_EQ(tools->ParameterTypes("unknown", "city"), kAnyJsonType);
}

TEST(ToolSetTest, ReferencesInACircleEnd) {
  const ToolSet tools(ParseToolDefinitions(
      R"([{"name": "f", "parameters": {"$defs": {"A": {"$ref": "#/$defs/A"}}, "properties": {"a": {"$ref": "#/$defs/A"}}}}])"));
  EXPECT_EQ(tools.ParameterTypes("f", "a"), kAnyJsonType);
}

TEST(CallIdTest, IdsHaveTheFormOfTheFamily) {
  using CallIds = ToolCallFormat::CallIds;
  const std::string hex = MakeCallId(CallIds::kHex, "r", 0, "f");
  EXPECT_EQ(hex.size(), 29u);
  EXPECT_EQ(hex.find_first_not_of("0123456789abcdef", 5), std::string::npos) << hex;
  EXPECT_EQ(hex, MakeCallId(CallIds::kHex, "r", 0, "f"));
  EXPECT_NE(hex, MakeCallId(CallIds::kHex, "r", 1, "f"));
  EXPECT_NE(hex, MakeCallId(CallIds::kHex, "s", 0, "f"));
  EXPECT_EQ(MakeCallId(CallIds::kNineCharacters, "r", 0, "f").size(), 9u);
  EXPECT_EQ(MakeCallId(CallIds::kKimi, "r", 2, "f"), "functions.f:2");
}

}  // namespace
}  // namespace vllm
