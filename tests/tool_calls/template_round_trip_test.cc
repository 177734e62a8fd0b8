// Renders conversations with tool calls by chat templates, and parses the assistant's turn. The result must be the
// calls of the conversation. The templates of tests/data/tool_calls imitate those of one family each.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "engine/structured_output/tool_calls/tool_call_constraint.h"
#include "tests/tool_calls/call_text.h"
#include "tokenizer/jinja/chat_template.h"

namespace vllm {
namespace {

using testing_support::EventsOf;
using testing_support::NamedCall;
using testing_support::OrderedJson;
using testing_support::TestTools;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Conversation {
  std::string content;
  std::vector<NamedCall> calls;
  bool has_json_text = false;  // the arguments are strings
};

const OrderedJson kWeather = {{"city", "Zürich \"East\" {[\\]}\nline 2"},
                              {"days", 3},
                              {"factor", 0.5},
                              {"hourly", true},
                              {"tags", {"a", "b, c", 1}},
                              {"options", {{"deep", {{"x", {1, 2}}}}}}};
const NamedCall kWeatherCall = {"get_weather", kWeather};
const NamedCall kTimeCall = {"get_time", OrderedJson::object()};

OrderedJson MessagesOf(const Conversation& conversation) {
  OrderedJson calls = OrderedJson::array();
  for (const NamedCall& call : conversation.calls) {
    OrderedJson arguments = call.arguments;
    if (conversation.has_json_text) arguments = call.arguments.dump();
    calls.push_back({{"id", "abcdefgh" + std::to_string(calls.size())},
                     {"type", "function"},
                     {"function", {{"name", call.name}, {"arguments", arguments}}}});
  }
  OrderedJson answer = {{"role", "assistant"}, {"content", conversation.content}, {"tool_calls", calls}};
  if (conversation.has_json_text) answer["content"] = nullptr;
  return {{{"role", "user"}, {"content", "Hello"}}, answer};
}

// Returns what the model would write for the last message.
std::string AssistantTurn(const tokenizer::ChatTemplate& chat_template, const Conversation& conversation) {
  tokenizer::RenderOptions options;
  options.eos_token = "</s>";
  OrderedJson context = {{"messages", MessagesOf(conversation)}, {"add_generation_prompt", false}};
  for (const NamedCall& call : {kWeatherCall, kTimeCall}) {
    const OrderedJson parameters = {{"type", "object"}, {"properties", OrderedJson::object()}};
    context["tools"].push_back(
        {{"type", "function"},
         {"function", {{"name", call.name}, {"description", "A tool."}, {"parameters", parameters}}}});
  }
  const std::string whole = chat_template.RenderJson(context.dump(), options);
  context["messages"].erase(1);
  context["add_generation_prompt"] = true;
  std::string prompt = chat_template.RenderJson(context.dump(), options);
  prompt.erase(std::min(prompt.rfind("<think>"), prompt.size()));
  const auto [end, unused] = std::mismatch(whole.begin(), whole.end(), prompt.begin(), prompt.end());
  std::string turn(end, whole.end());
  const std::string no_thought = "<think>\n\n</think>\n\n";
  if (turn.starts_with(no_thought)) turn.erase(0, no_thought.size());
  for (const std::string mark : {"<|im_end|>", "</s>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "[e~[",
                                 "<｜end▁of▁sentence｜>", "<|call|>"}) {
    const size_t at = turn.rfind(mark);
    if (at != std::string::npos && turn.find_first_not_of('\n', at + mark.size()) == std::string::npos) turn.erase(at);
  }
  return turn;
}

// Expects that constrained calls can be what the template writes.
void ExpectAllowed(const ToolCallFormat& format, const Conversation& conversation, const std::string& turn) {
  // In harmony, a call ends the output of the model, although templates can write several.
  if (format.reader == ToolCallFormat::Reader::kHarmony && conversation.calls.size() > 1) return;
  ToolCallConstraint constraint{&format, /*must_call=*/false, /*parallel_calls=*/true, TestTools()->tools()};
  for (const bool must_call : {false, true}) {
    if (must_call && !conversation.content.empty()) continue;
    constraint.must_call = must_call;
    GrammarAutomaton automaton(CompileGrammar(ToolCallParams(constraint), {}),
                               std::make_shared<const VocabTrie>(std::vector<std::string>(), 0));
    GrammarAutomaton::Position position;
    EXPECT_TRUE(automaton.Advance(position, turn) && automaton.MayEnd(position)) << turn;
  }
}

void ExpectRoundTrip(const tokenizer::ChatTemplate& chat_template, const Conversation& conversation,
                     const std::string& format_name = "") {
  const ToolCallFormat* format = DetectToolCallFormat(chat_template.source(), nullptr);
  ASSERT_NE(format, nullptr);
  if (!format_name.empty()) {
    EXPECT_EQ(format->name, format_name);
  }
  const std::string turn = AssistantTurn(chat_template, conversation);
  SCOPED_TRACE(std::string(format->name) + ": " + turn);
  const ToolCallOutput output = ParseToolCalls(*format, TestTools(), "request", turn);
  EXPECT_EQ(output.text, conversation.content);
  EXPECT_EQ(output.error, "");
  ASSERT_EQ(output.calls.size(), conversation.calls.size());
  for (size_t i = 0; i < output.calls.size(); ++i) {
    EXPECT_EQ(output.calls[i].name, conversation.calls[i].name);
    EXPECT_EQ(output.calls[i].error, "");
    EXPECT_EQ(OrderedJson::parse(output.calls[i].arguments), conversation.calls[i].arguments);
  }
  ExpectAllowed(*format, conversation, turn);
  std::vector<size_t> bytes;
  for (size_t i = 1; i < turn.size(); ++i) {
    EXPECT_EQ(EventsOf(*format, TestTools(), turn, {i}), EventsOf(*format, TestTools(), turn, {})) << "split at " << i;
    bytes.push_back(i);
  }
  EXPECT_EQ(EventsOf(*format, TestTools(), turn, bytes), EventsOf(*format, TestTools(), turn, {}));
}

std::vector<std::string> Fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/tool_calls")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class FixtureTest : public ::testing::TestWithParam<std::string> {
 protected:
  void ExpectCalls(const Conversation& conversation) const {
    const auto chat_template = tokenizer::ChatTemplate::Parse(
        ReadText(std::string(VLLMCLI_TEST_DATA) + "/tool_calls/" + GetParam() + ".jinja"));
    ExpectRoundTrip(*chat_template, conversation, GetParam());
  }
};

TEST_P(FixtureTest, OneCall) { ExpectCalls({"", {kWeatherCall}}); }
TEST_P(FixtureTest, TwoCalls) { ExpectCalls({"", {kWeatherCall, kTimeCall}}); }
TEST_P(FixtureTest, NoArguments) { ExpectCalls({"", {kTimeCall}}); }
TEST_P(FixtureTest, TextBeforeTheCall) { ExpectCalls({"Let me see.", {kWeatherCall}}); }

INSTANTIATE_TEST_SUITE_P(Templates, FixtureTest, ::testing::ValuesIn(Fixtures()),
                         [](const auto& param_info) { return param_info.param; });

struct RealTemplate {
  std::string path;
  std::string format_name;
  bool has_two_calls = true;
  bool has_json_text = false;
  bool has_commas = true;  // between arguments; the template without commas has a variable of the wrong scope
};

TEST(RealTemplateRoundTripTest, TemplatesOfModels) {
  const std::string directory = std::string(VLLMCLI_REALDATA) + "/chat-templates/";
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "reference data not found: " << directory;
  const std::vector<RealTemplate> templates = {
      {"llama.cpp/Qwen-Qwen2.5-7B-Instruct.jinja", "hermes"},
      {"llama.cpp/Qwen-Qwen3-0.6B.jinja", "hermes"},
      {"llama.cpp/Qwen-QwQ-32B.jinja", "hermes"},
      {"llama.cpp/NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", "hermes"},
      {"vllm/tool_chat_template_hermes.jinja", "hermes"},
      {"llama.cpp/mistralai-Mistral-Nemo-Instruct-2407.jinja", "mistral"},
      {"vllm/tool_chat_template_mistral.jinja", "mistral"},
      {"llama.cpp/meta-llama-Llama-3.1-8B-Instruct.jinja", "llama3_json", false},
      {"llama.cpp/meta-llama-Llama-3.2-3B-Instruct.jinja", "llama3_json", false},
      {"vllm/tool_chat_template_llama3.1_json.jinja", "llama3_json", false},
      {"vllm/tool_chat_template_gemma3_pythonic.jinja", "pythonic", true, false, false},
      {"llama.cpp/openai-gpt-oss-120b.jinja", "openai", false},
      {"llama.cpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja", "deepseek_v3", true, true},
  };
  for (const RealTemplate& real : templates) {
    SCOPED_TRACE(real.path);
    const auto chat_template = tokenizer::ChatTemplate::Parse(ReadText(directory + real.path));
    const NamedCall call = real.has_commas ? kWeatherCall : NamedCall{"get_weather", {{"city", kWeather["city"]}}};
    ExpectRoundTrip(*chat_template, {"", {call}, real.has_json_text}, real.format_name);
    if (real.has_two_calls) {
      ExpectRoundTrip(*chat_template, {"", {call, kTimeCall}, real.has_json_text}, real.format_name);
    }
  }
}

}  // namespace
}  // namespace vllm
