#include "app/batch/input/row_parser.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

std::unique_ptr<PromptRenderer> Renderer() {
  tokenizer::ChatTemplateSource source;
  source.text =
      "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{% if tools %}T{{ tools | length }}{% endif %}"
      "{% if add_generation_prompt %}>{% endif %}{{ extra }}";
  return std::make_unique<PromptRenderer>(std::move(source), std::nullopt);
}

class RowParserTest : public testing::Test {
 protected:
  BatchRow Parse(std::string_view record) {
    id_ = RowId();
    return RowParser(InputFormat::kJsonLines, defaults_, renderer_.get()).Parse(record, id_);
  }
  std::string ErrorOf(std::string_view record) {
    try {
      Parse(record);
    } catch (const RowError& error) {
      return error.code() + ": " + error.what();
    }
    return "";
  }
  static std::string TextOf(const BatchRow& row) { return std::get<TextPrompt>(row.prompt).text; }

  std::unique_ptr<PromptRenderer> renderer_ = Renderer();
  RowDefaults defaults_;
  RowId id_;
};

TEST_F(RowParserTest, PromptIsTextOrTokenIdsOrMessages) {
  const BatchRow text = Parse(R"({"prompt":"a"})");
  EXPECT_EQ(TextOf(text), "a");
  EXPECT_TRUE(std::get<TextPrompt>(text.prompt).add_special_tokens);
  EXPECT_EQ(std::get<std::vector<int32_t>>(Parse(R"({"prompt_token_ids":[1,2]})").prompt),
            (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(std::get<std::vector<int32_t>>(Parse(R"({"prompt":[3]})").prompt), (std::vector<int32_t>{3}));
  const BatchRow chat = Parse(R"({"messages":[{"role":"user","content":"a"}]})");
  EXPECT_EQ(TextOf(chat), "user=a;>");
  EXPECT_FALSE(std::get<TextPrompt>(chat.prompt).add_special_tokens);
}

TEST_F(RowParserTest, SamplingFieldsHaveVllmsNames) {
  const SamplingParams params =
      Parse(R"({"prompt":"a","max_tokens":3,"temperature":0.5,"top_k":4,"top_p":0.5,"min_p":0.1,"n":2,"seed":9,
               "stop":"x","stop_token_ids":[1],"bad_words":["b"],"logit_bias":{"5":-2},"allowed_token_ids":[7],
               "logprobs":2,"prompt_logprobs":1,"ignore_eos":true,"min_tokens":1,"presence_penalty":1,
               "frequency_penalty":-1,"repetition_penalty":1.1,"skip_special_tokens":false,
               "include_stop_str_in_output":true})")
          .params;
  EXPECT_EQ(params.max_tokens, 3);
  EXPECT_EQ(params.temperature, 0.5);
  EXPECT_EQ(params.top_k, 4);
  EXPECT_EQ(params.n, 2);
  EXPECT_EQ(params.seed, 9u);
  EXPECT_EQ(params.stop, (std::vector<std::string>{"x"}));
  EXPECT_EQ(params.logit_bias, (std::vector<std::pair<int32_t, float>>{{5, -2.0F}}));
  EXPECT_EQ(params.allowed_token_ids, (std::vector<int32_t>{7}));
  EXPECT_EQ(params.logprobs, 2);
  EXPECT_TRUE(params.ignore_eos);
  EXPECT_FALSE(params.skip_special_tokens);
}

TEST_F(RowParserTest, StructuredOutputsHaveVllmsAndOpenAisNames) {
  const auto schema_of = [&](const std::string& field) {
    return Parse(R"({"prompt":"a",)" + field + "}").params.structured_outputs.value_or(StructuredOutputsParams{}).text;
  };
  EXPECT_EQ(schema_of(R"("structured_outputs":{"json":{"type":"null"}})"), R"({"type":"null"})");
  EXPECT_EQ(schema_of(R"("structured_outputs":{"json":"{}","regex":null})"), "{}");
  EXPECT_EQ(schema_of(R"("structured_outputs":{"json_object":true})"), R"({"type":"object"})");
  defaults_.params.structured_outputs = StructuredOutputsParams{"true"};
  EXPECT_EQ(schema_of(R"("structured_outputs":null)"), "true");
  const auto openai = [&](const std::string& format) {
    defaults_.params.structured_outputs.reset();
    return Parse(R"({"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"messages":[{"role":"user",)"
                 R"("content":"a"}],"response_format":)" +
                 format + "}}")
        .params.structured_outputs.value_or(StructuredOutputsParams{"none"})
        .text;
  };
  EXPECT_EQ(openai(R"({"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"null"}}})"),
            R"({"type":"null"})");
  EXPECT_EQ(openai(R"({"type":"json_object"})"), R"({"type":"object"})");
  EXPECT_EQ(openai(R"({"type":"text"})"), "none");
  EXPECT_EQ(schema_of(R"("response_format":{"type":"json_schema","json_schema":{"schema":{"const":1}}})"),
            R"({"const":1})");
  defaults_.params.structured_outputs = StructuredOutputsParams{"true"};
  EXPECT_EQ(schema_of(R"("response_format":null)"), "true");
  EXPECT_EQ(schema_of(R"("response_format":{"type":"text"})"), "");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","structured_outputs":{"json":{}},"response_format":{"type":"json_object"}})"),
            "invalid_row: row: has both structured_outputs and response_format");
}

TEST_F(RowParserTest, AConstraintThatIsNotSupportedIsAnErrorOfTheRow) {
  const auto error_of = [&](const std::string& field) {
    return ErrorOf(R"({"prompt":"a","structured_outputs":)" + field + "}");
  };
  EXPECT_EQ(error_of(R"({"whitespace_pattern":" "})"),
            "invalid_row: structured_outputs.whitespace_pattern: not supported");
  EXPECT_EQ(error_of(R"({"json":{},"json_object":true})"),
            "invalid_row: structured_outputs: must have only one constraint");
  EXPECT_EQ(error_of("{}"), "invalid_row: structured_outputs: must have a constraint");
  EXPECT_EQ(error_of(R"({"json":1})"), "invalid_row: structured_outputs.json: must be a JSON Schema (1)");
}

TEST_F(RowParserTest, NullLeavesTheDefault) {
  defaults_.params.max_tokens = 5;
  EXPECT_EQ(Parse(R"({"prompt":"a","max_tokens":null,"seed":null,"stop":null})").params.max_tokens, 5);
}

TEST_F(RowParserTest, ErrorsNameTheField) {
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","max_tokens":"x"})"), "invalid_row: max_tokens: must be a whole number (\"x\")");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","temperature":[1]})"), "invalid_row: temperature: must be a number (array)");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","messages":[]})"), "invalid_row: row: has both prompt and messages");
  EXPECT_EQ(ErrorOf("{}"), "invalid_row: row: needs prompt, messages or prompt_token_ids");
  EXPECT_EQ(ErrorOf(R"({"prompt_token_ids":[-1]})"), "invalid_row: prompt_token_ids: not a token id (-1)");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","custom_id":5})"), "invalid_row: custom_id: must be a string (5)");
  EXPECT_EQ(ErrorOf("[1]").substr(0, 12), "invalid_json");
}

TEST_F(RowParserTest, JsonErrorDoesNotShowThePrompt) {
  EXPECT_EQ(ErrorOf("{\"prompt\":\"my secret\" x}").find("secret"), std::string::npos);
}

TEST_F(RowParserTest, DeepNestingIsRejected) {
  EXPECT_NE(ErrorOf("{\"prompt\":" + std::string(100000, '[')), "");
  const std::string balanced = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_EQ(ErrorOf("{\"messages\":[{\"role\":\"user\",\"content\":" + balanced + "}]}"),
            "invalid_json: nested too deeply (limit 128)");
}

TEST_F(RowParserTest, DefaultSystemMessageIsPrependedUnlessTheRowHasOne) {
  defaults_.system = "S";
  EXPECT_EQ(TextOf(Parse(R"({"messages":[{"role":"user","content":"a"}]})")), "system=S;user=a;>");
  EXPECT_EQ(TextOf(Parse(R"({"messages":[{"role":"system","content":"own"},{"role":"user","content":"a"}]})")),
            "system=own;user=a;>");
  defaults_.prompts_are_chats = true;
  EXPECT_EQ(TextOf(Parse(R"({"prompt":"a"})")), "system=S;user=a;>");
}

TEST_F(RowParserTest, TextLineUsesTheChatTemplateUnlessThereIsNoneOrItIsTurnedOff) {
  RowId id;
  const auto text_of_line = [&](const PromptRenderer* renderer) {
    return TextOf(RowParser(InputFormat::kText, defaults_, renderer).Parse("a", id));
  };
  EXPECT_EQ(text_of_line(renderer_.get()), "user=a;>");
  EXPECT_EQ(text_of_line(nullptr), "a");
  defaults_.prompts_are_chats = false;
  EXPECT_EQ(text_of_line(renderer_.get()), "a");
}

TEST_F(RowParserTest, UnknownFieldsAreCarriedAndMisspelledOnesWarnedAboutOncePerName) {
  RowParser parser(InputFormat::kJsonLines, defaults_, nullptr);
  id_.line = 7;
  for (int i = 0; i < 2; ++i) {
    const BatchRow row = parser.Parse(R"({"prompt":"a","topp":1,"label":{"x":[2]},"error":{"code":"c"}})", id_);
    EXPECT_EQ(row.carried.dump(), R"({"topp":1,"label":{"x":[2]}})");
  }
  EXPECT_EQ(parser.TakeWarnings(),
            std::vector<std::string>{"line 7: field topp is not known and has no effect; did you mean top_p?"});
  EXPECT_TRUE(parser.TakeWarnings().empty());
}

TEST_F(RowParserTest, AConstraintOutsideOfStructuredOutputsIsWarnedAbout) {
  RowParser parser(InputFormat::kJsonLines, defaults_, nullptr);
  id_.line = 3;
  parser.Parse(R"({"prompt":"a","regex":"[ab]","guided_json":{},"choice":"b"})", id_);
  EXPECT_EQ(parser.TakeWarnings(),
            (std::vector<std::string>{
                "line 3: field regex is not known and has no effect; did you mean structured_outputs?",
                "line 3: field guided_json is not known and has no effect; did you mean structured_outputs?"}));
}

TEST_F(RowParserTest, FieldsAreNotCarriedIfTheUserDoesNotWantThem) {
  defaults_.carries = false;
  EXPECT_TRUE(Parse(R"({"prompt":"a","label":1})").carried.is_null());
}

TEST_F(RowParserTest, OpenAiRowsCarryNothing) {
  const BatchRow row = Parse(
      R"({"custom_id":"c","method":"POST","url":"/v1/completions","note":1,"response":null,"body":{"prompt":"a","x":2}})");
  EXPECT_TRUE(row.carried.is_null());
}

TEST_F(RowParserTest, AnIdIsTheCustomIdOfARow) {
  EXPECT_TRUE(Parse(R"({"prompt":"a","id":17})").carried.is_null());
  EXPECT_EQ(id_.custom_id, "17");
  EXPECT_EQ(id_.id_key, "id");
  EXPECT_EQ(id_.id_value, 17);
  EXPECT_EQ(Parse(R"({"prompt":"a","id":"x","custom_id":"c"})").carried.dump(), R"({"id":"x"})");
  EXPECT_EQ(id_.custom_id, "c");
  EXPECT_EQ(ErrorOf(R"({"prompt":"a","id":[]})"), "invalid_row: id: must be a string or an integer");
}

TEST_F(RowParserTest, ARowWithAPromptIsNoOpenAiRow) {
  Parse(R"({"prompt":"a","url":"https://example.org","body":"text"})");
  EXPECT_FALSE(id_.is_openai);
}

// Returns the prompts that a row of this table becomes.
class TableTest : public RowParserTest {
 protected:
  std::string PromptOf(const std::string& header, const std::string& row,
                       const std::optional<std::string>& row_template = std::nullopt) {
    defaults_.table.row_template = row_template;
    RowParser parser(InputFormat::kCsv, defaults_, nullptr);
    parser.SetColumns(header);
    RowId id;
    return TextOf(parser.Parse(row, id));
  }
  void SetPreset(const std::string& text, const std::vector<std::string>& assignments = {}) {
    defaults_.preset.emplace(ParsePreset("p", text, "p.toml"), assignments);
  }
};

TEST_F(TableTest, TheOnlyColumnIsThePromptEvenIfItsNameHasBraces) {
  EXPECT_EQ(PromptOf("a{b", "x"), "x");
  EXPECT_EQ(PromptOf("{}", "{y}"), "{y}");
  EXPECT_EQ(PromptOf("id,prompt", "1,x"), "x");
}

TEST_F(TableTest, APresetTakesItsInputAndVariablesFromTheColumns) {
  SetPreset("prompt = '{input} to {language}'");
  EXPECT_EQ(PromptOf("input,language", "hi,French"), "hi to French");
  EXPECT_EQ(PromptOf("prompt,language", "hi,French"), "hi to French");
  EXPECT_EQ(PromptOf("a,language", "hi,French", "<{a}>"), "<hi> to French");
  EXPECT_THROW(PromptOf("a,language", "hi,French"), ConfigError);
  EXPECT_THROW(PromptOf("input,b", "hi,French"), ConfigError);
  SetPreset("prompt = '{a} to {language}'");
  EXPECT_EQ(PromptOf("a,language", "hi,French"), "hi to French");
}

TEST_F(TableTest, ColumnsThatTheTemplatesDoNotUseAreCarried) {
  defaults_.table = {"Q: {q}", "You are {role}.", "key", {}};
  RowParser parser(InputFormat::kCsv, defaults_, renderer_.get());
  parser.SetColumns("key,q,role,note");
  RowId id;
  const BatchRow row = parser.Parse("k1,why,a judge,\"a, b\"", id);
  EXPECT_EQ(TextOf(row), "system=You are a judge.;user=Q: why;>");
  EXPECT_EQ(id.custom_id, "k1");
  EXPECT_EQ(row.carried.dump(), R"({"note":"a, b"})");
}

TEST_F(TableTest, OnlyTheChosenColumnsAreCarried) {
  defaults_.table = {"{q}", std::nullopt, std::nullopt, {"q"}};
  RowParser parser(InputFormat::kCsv, defaults_, nullptr);
  parser.SetColumns("q,note");
  RowId id;
  EXPECT_EQ(parser.Parse("why,b", id).carried.dump(), R"({"q":"why"})");
  defaults_.table.carried_columns = {"nota"};
  EXPECT_THROW(RowParser(InputFormat::kCsv, defaults_, nullptr).SetColumns("q,note"), ConfigError);
}

TEST_F(RowParserTest, APresetMakesThePromptsOfAllTextsButNotOfMessagesTokenIdsAndOpenAiRows) {
  defaults_.preset.emplace(ParsePreset("p", "prompt = '<{input}>'", "p.toml"), std::vector<std::string>());
  EXPECT_EQ(TextOf(Parse(R"({"prompt":"a"})")), "user=<a>;>");
  EXPECT_EQ(TextOf(Parse(R"({"messages":[{"role":"user","content":"a"}]})")), "user=a;>");
  EXPECT_EQ(TextOf(Parse(R"({"custom_id":"c","method":"POST","url":"/v1/completions","body":{"prompt":"a"}})")), "a");
  EXPECT_EQ(std::get<std::vector<int32_t>>(Parse(R"({"prompt":[3]})").prompt), (std::vector<int32_t>{3}));
  RowId id;
  EXPECT_EQ(TextOf(RowParser(InputFormat::kText, defaults_, renderer_.get()).Parse("a", id)), "user=<a>;>");
  defaults_.prompts_are_chats = false;
  EXPECT_EQ(TextOf(Parse(R"({"prompt":"a"})")), "<a>");
}

TEST_F(RowParserTest, ContentPartsToolsAndTemplateVariablesReachTheTemplate) {
  EXPECT_EQ(
      TextOf(Parse(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}],
                            "tools":[{"name":"f"},{"name":"g"}],"chat_template_kwargs":{"extra":"E"},"add_generation_prompt":false})")),
      "user=a\nb;T2E");
  EXPECT_NE(ErrorOf(R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})"), "");
}

TEST_F(RowParserTest, ToolsAndTheirChoiceAreRead) {
  const auto row_with = [](const std::string& fields) {
    return R"({"messages":[{"role":"user","content":"a"}],)" + fields + "}";
  };
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f"}}])";
  const ToolRequest plain = Parse(row_with(tools)).tools;
  ASSERT_NE(plain.tools, nullptr);
  EXPECT_NE(plain.tools->Find("f"), nullptr);
  EXPECT_TRUE(plain.may_call());
  EXPECT_TRUE(plain.parallel_calls);
  EXPECT_FALSE(Parse(row_with(tools + R"(,"tool_choice":"none")")).tools.may_call());
  EXPECT_EQ(Parse(row_with(tools + R"(,"tool_choice":"required")")).tools.choice, ToolChoice::kRequired);
  const ToolRequest named =
      Parse(
          row_with(tools + R"(,"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false)"))
          .tools;
  EXPECT_EQ(named.choice, ToolChoice::kNamed);
  EXPECT_EQ(named.named_tool, "f");
  EXPECT_FALSE(named.parallel_calls);
  EXPECT_FALSE(Parse(row_with(R"("tools":[],"tool_choice":"auto")")).tools.may_call());

  EXPECT_EQ(ErrorOf(row_with(R"("tools":[{"name":"f"},{"name":"f"}])")),
            "invalid_row: tools[1] (f): another tool has this name");
  EXPECT_EQ(ErrorOf(row_with(R"("tool_choice":"required")")), "invalid_row: tool_choice: the request has no tools");
  EXPECT_EQ(ErrorOf(row_with(tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})")),
            "invalid_row: tool_choice: no tool has this name (g)");
  EXPECT_EQ(
      ErrorOf(row_with(tools + R"(,"tool_choice":"any")")),
      "invalid_row: tool_choice: must be none, auto, required or {\"type\":\"function\",\"function\":{\"name\":NAME}}");
  EXPECT_EQ(ErrorOf(row_with(tools + R"(,"parallel_tool_calls":1)")),
            "invalid_row: parallel_tool_calls: must be true or false");
}

TEST_F(RowParserTest, RowsWithToolsButWithoutAChoiceHaveThatOfTheFlag) {
  SetToolChoice("required", defaults_.tools);
  const std::string chat = R"({"messages":[{"role":"user","content":"a"}])";
  EXPECT_EQ(Parse(chat + "}").tools.choice, ToolChoice::kAuto);
  EXPECT_EQ(Parse(chat + R"(,"tools":[{"name":"f"}]})").tools.choice, ToolChoice::kRequired);
  EXPECT_EQ(Parse(chat + R"(,"tools":[{"name":"f"}],"tool_choice":"auto"})").tools.choice, ToolChoice::kAuto);
  SetToolChoice("g", defaults_.tools);
  EXPECT_EQ(ErrorOf(chat + R"(,"tools":[{"name":"f"}]})"), "invalid_row: tool_choice: no tool has this name (g)");
  defaults_.tools.tools = std::make_shared<const ToolSet>(ParseToolDefinitions(R"([{"name":"g"}])"));
  EXPECT_EQ(Parse(chat + "}").tools.named_tool, "g");
  defaults_.prompts_are_chats = true;
  EXPECT_EQ(Parse(R"({"prompt":"a"})").tools.named_tool, "g");
  EXPECT_FALSE(Parse(chat + R"(,"tools":[]})").tools.may_call());
}

TEST_F(RowParserTest, TextsCannotHaveTheToolThatTheyMustCall) {
  SetToolChoice("required", defaults_.tools);
  EXPECT_THROW(RowParser(InputFormat::kText, defaults_, renderer_.get()), ConfigError);
  EXPECT_NO_THROW(RowParser(InputFormat::kText, defaults_, nullptr));  // no chats
  EXPECT_NO_THROW(RowParser(InputFormat::kJsonLines, defaults_, renderer_.get()));
}

TEST_F(RowParserTest, MessagesWithoutATemplateAreRejected) {
  renderer_.reset();
  EXPECT_EQ(ErrorOf(R"({"messages":[{"role":"user","content":"a"}]})").substr(0, 15), "invalid_request");
}

TEST_F(RowParserTest, OpenAiBodiesUseOpenAiFieldNames) {
  const BatchRow row = Parse(
      R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"model":"m","user":"u","max_completion_tokens":7,
          "logprobs":true,"top_logprobs":3,"messages":[{"role":"user","content":"a"}],"stream":false}})");
  EXPECT_EQ(row.kind, RowKind::kOpenAiChat);
  EXPECT_EQ(row.params.max_tokens, 7);
  EXPECT_EQ(row.params.logprobs, 3);
  EXPECT_EQ(row.model, "m");
  EXPECT_EQ(id_.custom_id, "c");
  EXPECT_TRUE(id_.is_openai);
  const auto openai = [](const std::string& body) {
    return R"({"custom_id":"c","method":"POST","url":"/v1/completions","body":)" + body + "}";
  };
  EXPECT_EQ(Parse(openai(R"({"prompt":"a","logprobs":2})")).params.logprobs, 2);
  EXPECT_EQ(ErrorOf(openai(R"({"prompt":"a","stream":true})")), "invalid_row: stream: not supported");
  EXPECT_EQ(ErrorOf(openai(R"({"prompt":"a","best_of":3})")), "invalid_row: best_of: not supported");
  EXPECT_EQ(ErrorOf(openai(R"({"messages":[]})")), "invalid_row: prompt: missing");
  EXPECT_EQ(ErrorOf(R"({"method":"POST","url":"/v1/completions","body":{"prompt":"a"}})"),
            "invalid_row: custom_id: missing");
  EXPECT_NE(ErrorOf(R"({"custom_id":"c","method":"GET","url":"/v1/completions","body":{"prompt":"a"}})"), "");
}

}  // namespace
}  // namespace vllm::app
