// Tests chat templates in the program: variables from the command line, templates that ignore a system message,
// templates for tool use, and chat_template.json.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMessages = R"([{"role":"user","content":"hi"}])";
// A template that prints the variables that it receives, and ignores system messages.
constexpr const char* kTemplate =
    "{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}"
    "[{{ enable_thinking }}|{{ level }}|{{ list[1] if list is defined }}]";

class TemplateProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(GuideModel(), "");
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_template_" + std::to_string(getpid()));
    fs::create_directories(directory_ / "model");
    for (const auto& file : fs::directory_iterator(GuideModel())) fs::copy(file, directory_ / "model");
    Write("template.jinja", kTemplate);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }
  std::string Template() const { return directory_ / "template.jinja"; }
  std::string Model() const { return directory_ / "model"; }

  fs::path directory_;
};

TEST_F(TemplateProgramTest, VariablesAreJsonOrStrings) {
  const ProgramResult result =
      RunProgram({"render", "--chat-template", Template(), "--template-var", "enable_thinking=false", "--template-var",
                  "level=very high", "--template-var", "list=[1, {\"a\": 2}]", "-"},
                 Input(kMessages));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "hi[False|very high|{'a': 2}]");
}

TEST_F(TemplateProgramTest, ShowNamesTheFormatsOfThoughtsAndToolCalls) {
  const auto show = [&](const std::string& text) {
    Write("model/chat_template.jinja", text);
    const ProgramResult result = RunProgram({"show", "--json", Model()});
    EXPECT_EQ(result.status, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const std::string messages = "{% for m in messages %}{{ m.content }}{% endfor %}";
  const nlohmann::json plain = show(messages);
  EXPECT_TRUE(plain.at("thinking").is_null());
  EXPECT_TRUE(plain.at("tool_calls").is_null());
  const nlohmann::json both = show(messages + "{{ tools }}<tool_call></think>");
  EXPECT_EQ(both.at("thinking"), "qwen3");
  EXPECT_EQ(both.at("tool_calls"), "hermes");
  EXPECT_TRUE(show(messages + "<tool_call>").at("tool_calls").is_null()) << "the template does not show tools";
}

TEST_F(TemplateProgramTest, AVariableWithoutAValueIsRejected) {
  const ProgramResult result =
      RunProgram({"render", "--chat-template", Template(), "--template-var", "enable_thinking", "-"}, Input(kMessages));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("--template-var"), std::string::npos) << result.err;
}

TEST_F(TemplateProgramTest, ASystemMessageThatTheTemplateIgnoresIsRejected) {
  const ProgramResult run =
      RunProgram({"run", "--chat-template", Template(), "--system", "Be brief.", "-n", "2", "hi"});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("does not support a system message"), std::string::npos) << run.err;
  EXPECT_TRUE(run.out.empty());

  const std::string rows = Write("rows.jsonl",
                                 "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},"
                                 "{\"role\":\"user\",\"content\":\"u\"}]}\n" +
                                     std::string("{\"messages\":") + kMessages + "}\n");
  const ProgramResult batch = RunProgram({"batch", "--ordered", "--chat-template", Template(), "-n", "2", rows});
  EXPECT_EQ(batch.status, 1);
  const auto first = nlohmann::json::parse(batch.out.substr(0, batch.out.find('\n')));
  const auto second = nlohmann::json::parse(batch.out.substr(batch.out.find('\n') + 1));
  EXPECT_NE(first["error"]["message"].get<std::string>().find("does not support a system message"), std::string::npos);
  EXPECT_TRUE(second.contains("outputs"));
}

TEST_F(TemplateProgramTest, ToolsInTheRequestSelectTheTemplateForToolUse) {
  std::ofstream(directory_ / "model/tokenizer_config.json")
      << R"({"chat_template":[{"name":"default","template":"plain"},{"name":"tool_use","template":"tools: {{ tools[0] }}"}]})";
  fs::remove(directory_ / "model/chat_template.jinja");
  const auto render = [&](const std::string& context) {
    return RunProgram({"render", "-m", Model(), "-"}, Input(context)).out;
  };
  EXPECT_EQ(render(kMessages), "plain");
  EXPECT_EQ(render(R"({"messages":[],"tools":["t"]})"), "tools: t");
  EXPECT_EQ(render(R"({"messages":[],"tools":null})"), "plain");
}

constexpr const char* kTools = R"([{"type":"function","function":{"name":"weather","parameters":{"city":"string"}}}])";
constexpr const char* kToolTemplate =
    "{% if tools %}Tools: {{ tools | tojson }}\n{% endif %}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>"
    "{% endfor %}<|assistant|>";

TEST_F(TemplateProgramTest, ToolsOfTheCommandLineEqualThoseOfAContext) {
  const std::string file = Write("tools.json", kTools);
  const std::string text = Write("tools.jinja", kToolTemplate);
  const std::string with_tools = R"({"messages":)" + std::string(kMessages) + R"(,"tools":)" + kTools + "}";
  const ProgramResult expected = RunProgram({"render", "--chat-template", text, "-"}, Input(with_tools));
  EXPECT_EQ(expected.status, 0) << expected.err;
  EXPECT_EQ(expected.out.rfind("Tools: [{", 0), 0u) << expected.out;
  for (const std::string& value : {file, std::string(kTools)}) {
    const ProgramResult result =
        RunProgram({"render", "--chat-template", text, "--tools", value, "-"}, Input(kMessages));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, expected.out);
  }
  // The tools of a context replace those of the command line.
  const ProgramResult other =
      RunProgram({"render", "--chat-template", text, "--tools", "[{\"name\":\"other\"}]", "-"}, Input(with_tools));
  EXPECT_EQ(other.out, expected.out);
}

TEST_F(TemplateProgramTest, ToolsOfAPresetReachTheModel) {
  const std::string text = Write("tools.jinja", kToolTemplate);
  const std::string shown =
      RunProgram({"render", "--chat-template", Write("json.jinja", "{{ tools | tojson }}"), "--tools", kTools, "-"},
                 Input(kMessages))
          .out;
  const std::string tool_template = kToolTemplate;
  const std::string with_tools = "Tools: " + shown + "\n" + tool_template.substr(tool_template.find("{% for"));
  const std::string literal = Write("literal.jinja", with_tools);
  fs::create_directories(directory_ / "vllmcli" / "presets");
  Write("vllmcli/presets/weather.toml", std::string("tools = '''") + kTools + "'''\n");
  const auto outputs = [&](std::vector<std::string> flags) {
    const std::vector<std::string> base = {"run", "--json", "-t", "0", "-n", "12", "What is a batch?"};
    flags.insert(flags.begin(), base.begin(), base.end());
    ProgramOptions options;
    options.environment = {{"XDG_CONFIG_HOME", directory_}};
    const ProgramResult result = RunProgram(flags, options);
    EXPECT_EQ(result.status, 0) << result.err;
    const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
    return nlohmann::json{json["outputs"], json["prompt_tokens"]};
  };
  const nlohmann::json expected = outputs({"--chat-template", literal});
  EXPECT_EQ(outputs({"--chat-template", text, "--preset", "weather"}), expected);
  EXPECT_EQ(outputs({"--chat-template", text, "--tools", kTools}), expected);
  EXPECT_NE(outputs({"--chat-template", text}), expected);
}

TEST_F(TemplateProgramTest, InvalidToolsAreRejected) {
  for (const std::string& tools : {std::string("[1]"), std::string("[{]"), Write("object.json", "{\"a\":1}"),
                                   std::string(directory_ / "missing.json"), std::string(1000, '[')}) {
    const ProgramResult result = RunProgram({"run", "--tools", tools, "hi"});
    EXPECT_EQ(result.status, 2) << tools;
    EXPECT_NE(result.err.find(tools[0] == '[' ? "--tools: " : directory_.string()), std::string::npos) << result.err;
  }
}

TEST_F(TemplateProgramTest, ToolsThatTheTemplateIgnoresAreReported) {
  const ProgramResult result = RunProgram({"run", "-n", "1", "--tools", kTools, "hi"});
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("does not show tools to the model"), std::string::npos) << result.err;
}

TEST_F(TemplateProgramTest, ChatTemplateJsonOfAProcessorIsRead) {
  std::ofstream(directory_ / "model/tokenizer_config.json") << "{}";
  fs::remove(directory_ / "model/chat_template.jinja");
  std::ofstream(directory_ / "model/chat_template.json") << R"({"chat_template":"from the processor"})";
  EXPECT_EQ(RunProgram({"render", "-m", Model(), "-"}, Input(kMessages)).out, "from the processor");
}

}  // namespace
}  // namespace vllm::app
