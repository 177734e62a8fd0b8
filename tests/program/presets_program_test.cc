// Runs presets: the presets command, and --preset in run, chat and batch. A preset must give the tokens of the same
// prompt and flags without it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Flags = std::vector<std::string>;

class PresetsProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(model_ = GuideModel(), "");
    fs::create_directories(directory_);
  }
  ProgramResult Run(const Flags& flags, const std::string& input = "",
                    std::map<std::string, std::string> environment = {}) const {
    ProgramOptions options = Input(input);
    environment["XDG_CONFIG_HOME"] = temp_.path();
    environment["XDG_DATA_HOME"] = temp_.path();
    options.environment = std::move(environment);
    return RunProgram(flags, options);
  }
  // Runs a command with the bundled model and returns the "outputs" of its JSON.
  Json Outputs(Flags flags, const std::string& input = "") const {
    const Flags base = {"run", "-m", model_, "--json", "-n", "12"};
    flags.insert(flags.begin(), base.begin(), base.end());
    const ProgramResult result = Run(flags, input);
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out, nullptr, false)["outputs"];
  }
  std::string Preset(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name + ".toml", std::ios::binary) << text;
    return name;
  }
  // Returns the path of a program that works as an editor: a shell script with these commands, and the file as $1.
  std::string Editor(const std::string& commands) const {
    const std::string path = temp_.Write("editor", "#!/bin/sh\n" + commands + "\n");
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  std::string TextOf(const std::string& name) const {
    std::ifstream file(directory_ + "/" + name, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/vllmcli/presets";
  std::string model_;
};

TEST_F(PresetsProgramTest, RunWithAPresetEqualsRunWithItsPromptSystemMessageAndSettings) {
  Preset("p", "system = 'You are {who}.'\nprompt = 'Q: {input}'\ntemperature = 1.5\nseed = 7\n");
  const Json expected = Outputs({"--system", "You are a guide.", "-t", "1.5", "--seed", "7", "Q: What is vllmcli?"});
  EXPECT_EQ(Outputs({"--preset", "p", "-p", "who=a guide", "What is vllmcli?"}), expected);
  EXPECT_EQ(Outputs({"--preset", "p", "-p", "who=a guide"}, "What is vllmcli?\n"), expected);
  EXPECT_EQ(Outputs({"--preset", "p", "-p", "who=a guide", "-t", "0", "What is vllmcli?"}),
            Outputs({"--system", "You are a guide.", "-t", "0", "--seed", "7", "Q: What is vllmcli?"}));
}

TEST_F(PresetsProgramTest, TheSchemaOfAPresetEqualsItsFlag) {
  Preset("p", "schema = 'a bool, b bool'\nseed = 3\n");
  const Json expected = Outputs({"--schema", "a bool, b bool", "--seed", "3", "-n", "20", "What is vllmcli?"});
  const Json answer = Json::parse(expected[0]["text"].get<std::string>(), nullptr, false);
  EXPECT_TRUE(answer.is_object() && answer.size() == 2 && answer["a"].is_boolean() && answer["b"].is_boolean())
      << expected;
  EXPECT_EQ(Outputs({"--preset", "p", "-n", "20", "What is vllmcli?"}), expected);
  // A flag overrides the preset.
  EXPECT_EQ(Outputs({"--preset", "p", "--json-schema", R"({"const":1})", "x"})[0]["text"], "1");
  EXPECT_EQ(Outputs({"--preset", "p", "--schema", "", "What is vllmcli?"}),
            Outputs({"--seed", "3", "What is vllmcli?"}));
}

TEST_F(PresetsProgramTest, APresetWithoutSettingsAndPromptChangesNothing) {
  Preset("empty", "description = 'nothing'\n");
  EXPECT_EQ(Outputs({"--preset", "empty", "What is vllmcli?"}), Outputs({"What is vllmcli?"}));
}

TEST_F(PresetsProgramTest, TheModelOfAPresetIsUsedUnlessAFlagNamesOne) {
  Preset("p", "model = '" + temp_.path() + "/missing'\n");
  EXPECT_NE(Run({"run", "--preset", "p", "x"}, "", {{"VLLMCLI_MODEL", model_}}).err.find("/missing"),
            std::string::npos);
  EXPECT_EQ(Run({"run", "--preset", "p", "-m", model_, "-n", "1", "x"}).status, 0);
}

TEST_F(PresetsProgramTest, RunReportsAMissingVariableOrInput) {
  const ProgramResult variable = Run({"run", "--preset", "extract", "text"});
  EXPECT_EQ(variable.status, 2);
  EXPECT_EQ(variable.err.substr(0, variable.err.find('\n')),
            "vllmcli: preset extract: the variable fields has no value");
  EXPECT_NE(variable.err.find("\nhint: set it with -p fields=VALUE"), std::string::npos) << variable.err;
  EXPECT_EQ(Run({"run", "--preset", "summarize"}).status, 2);
  EXPECT_EQ(Run({"run", "--preset", "../config", "x"}).status, 2);
  EXPECT_EQ(Run({"run", "-p", "a=b", "x"}).status, 2);
}

TEST_F(PresetsProgramTest, EveryRowOfABatchGoesThroughThePreset) {
  Preset("to", "prompt = '{input} in {language}'\ntemperature = 0\n");
  const auto answers = [&](Flags flags, const std::string& input) {
    const Flags base = {"batch", "-m", model_, "-n", "8", "--ordered", "-"};
    flags.insert(flags.begin(), base.begin(), base.end());
    const ProgramResult result = Run(flags, input);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string expected =
      answers({"--input-format", "txt", "-t", "0"}, "What is a batch in French\nHello {x} in French\n");
  const Flags preset = {"--preset", "to", "-p", "language=French"};
  const auto with = [&](Flags flags) {
    flags.insert(flags.end(), preset.begin(), preset.end());
    return flags;
  };
  EXPECT_EQ(answers(with({"--input-format", "txt"}), "What is a batch\nHello {x}\n"), expected);
  EXPECT_EQ(
      answers(with({"--input-format", "jsonl"}), "{\"prompt\":\"What is a batch\"}\n{\"prompt\":\"Hello {x}\"}\n"),
      expected);
  EXPECT_EQ(answers({"--input-format", "csv", "--preset", "to"},
                    "language,input\nFrench,What is a batch\nFrench,Hello {x}\n"),
            expected);
  EXPECT_EQ(Run({"batch", "-", "--input-format", "csv", "--preset", "to"}, "id,input\n1,x\n").status, 2);
  EXPECT_EQ(Run({"batch", "-", "--input-format", "txt", "--preset", "to", "--check"}, "x\n").status, 2);
}

TEST_F(PresetsProgramTest, ChatMessagesGoThroughThePromptAndEditReturnsTheTypedText) {
  Preset("p", "system = 'S'\nprompt = 'Q: {input}'\ntemperature = 0\n");
  const auto messages = [&](const Flags& flags, const std::string& input) {
    Flags all = {"chat", "-m", model_, "-n", "4"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ProgramResult chat = Run(all, input);
    EXPECT_EQ(chat.status, 0) << chat.err;
    const ProgramResult list = Run({"chats", "list", "--json"});
    const int64_t id = Json::parse(list.out)[0]["id"];
    Json ids = Json::array();
    const Json shown = Json::parse(Run({"chats", "show", std::to_string(id), "--json"}).out);
    for (const Json& message : shown["messages"]) {
      ids.push_back({message["role"], message["text"], message["token_ids"]});
    }
    EXPECT_EQ(Run({"chats", "rm", std::to_string(id)}).status, 0);
    return ids;
  };
  const Json expected = messages({"--system", "S", "-t", "0"}, "Q: one\nQ: two\n");
  ASSERT_EQ(expected.size(), 5u);
  EXPECT_EQ(messages({"--preset", "p"}, "one\ntwo\n"), expected);
  EXPECT_EQ(messages({}, "/preset p\none\ntwo\n"), expected);
  // After /edit, the typed text goes through the prompt once. The edited question is a sibling, so it comes last.
  Json edited = messages({"--preset", "p"}, "one\nthree\n/edit\ntwo\n");
  ASSERT_EQ(edited.size(), 7u);
  EXPECT_EQ(edited[5], expected[3]);
  EXPECT_EQ(edited[6], expected[4]);
  // An earlier preset leaves nothing behind.
  EXPECT_EQ(messages({"--system", "S", "-t", "0"}, "/preset translate\n/preset off\nQ: one\nQ: two\n"), expected);
}

TEST_F(PresetsProgramTest, AStoredRunAndItsFollowUpUseThePreset) {
  Preset("p", "system = 'S'\nprompt = 'Q: {input}'\ntemperature = 1.5\nseed = 7\n");
  Preset("fixed", "prompt = 'Say it:'\n");
  const auto run = [&](Flags flags) {
    const Flags base = {"run", "-m", model_, "-n", "4"};
    flags.insert(flags.begin(), base.begin(), base.end());
    const ProgramResult result = Run(flags);
    EXPECT_EQ(result.status, 0) << result.err;
  };
  run({"--save", "--preset", "p", "one"});
  run({"-c", "--preset", "p", "two"});
  run({"-c", "--preset", "fixed", "three"});
  const Json shown = Json::parse(Run({"chats", "show", "1", "--json"}).out);
  EXPECT_EQ(shown["title"], "one");
  ASSERT_EQ(shown["messages"].size(), 7u);
  EXPECT_EQ(shown["messages"][0]["text"], "S");
  EXPECT_EQ(shown["messages"][1]["text"], "Q: one");
  EXPECT_EQ(shown["messages"][3]["text"], "Q: two");
  EXPECT_EQ(shown["messages"][5]["text"], "Say it:\nthree");
  EXPECT_EQ(Json::parse(shown["messages"][4]["sampling_params"].get<std::string>())["seed"], 7);
  // The prompt of this preset has the variable `fields`, which is not set.
  EXPECT_EQ(Run({"run", "-c", "-m", model_, "--preset", "extract", "x"}).status, 2);
}

TEST_F(PresetsProgramTest, AQuestionChosenInTheTreeGoesThroughThePromptOnce) {
  Preset("p", "prompt = 'Q: {input}'\n");
  const Flags flags = {"chat", "-m", model_, "-n", "4", "--ignore-eos", "--preset", "p"};
  ASSERT_EQ(Run(flags, "one\n").status, 0);
  Flags continued = flags;
  continued.emplace_back("-c");
  PtyProgram chat(continued, {{"XDG_CONFIG_HOME", temp_.path()}, {"XDG_DATA_HOME", temp_.path()}});
  ASSERT_TRUE(chat.WaitFor(">>> Q: one")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/tree\r");
  ASSERT_TRUE(chat.WaitForScreen([](const TerminalEmulator& terminal) {
    return terminal.Screen().find("q: back") != std::string::npos;
  })) << chat.terminal().Screen();
  chat.Send("/Q:\r\r");  // the filter leaves one row
  ASSERT_TRUE(chat.WaitFor("replaces this question in a new branch")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> one")) << chat.output();
  chat.Send(" more\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 4 tokens")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  const Json shown = Json::parse(Run({"chats", "show", "1", "--json"}).out);
  ASSERT_EQ(shown["messages"].size(), 4u);
  EXPECT_EQ(shown["messages"][2]["text"], "Q: one more");
  EXPECT_EQ(shown["messages"][2]["parent"], 0);
}

TEST_F(PresetsProgramTest, AConversationIsNamedAfterTheTypedText) {
  Preset("p", "prompt = 'Q: {input}'\n");
  EXPECT_EQ(Run({"chat", "-m", model_, "-n", "4", "--preset", "p"}, "one\ntwo\n").status, 0);
  EXPECT_EQ(Json::parse(Run({"chats", "list", "--json"}).out)[0]["title"], "one");
}

TEST_F(PresetsProgramTest, AStoredConversationKeepsItsSystemMessage) {
  EXPECT_EQ(Run({"chat", "-m", model_, "-n", "4", "--system", "S"}, "one\n").status, 0);
  Preset("p", "system = 'other'\n");
  const ProgramResult chat = Run({"chat", "-m", model_, "-n", "4", "-c", "--preset", "p"}, "two\n/system\n");
  EXPECT_EQ(chat.status, 0);
  EXPECT_NE(chat.err.find("[the stored conversation keeps its own system message, not that of the preset]\n"),
            std::string::npos)
      << chat.err;
  EXPECT_NE(chat.err.find("\nS\n"), std::string::npos) << chat.err;
}

TEST_F(PresetsProgramTest, ChatListsPresetsAndReportsErrors) {
  const ProgramResult chat = Run({"chat", "-m", model_, "--no-save"},
                                 "/preset\n/preset extract\n/preset nosuch\n/preset translate language=x y\n/info\n");
  EXPECT_EQ(chat.status, 0);
  EXPECT_NE(chat.err.find("  summarize         summarize text"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("preset extract: the variable fields has no value"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("preset nosuch: there is none"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("[preset translate: translate text"), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("  preset   translate"), std::string::npos) << chat.err;
}

TEST_F(PresetsProgramTest, EditReplacesTheFileOnlyWithAValidText) {
  const std::string good = Editor("echo \"temperature = 0\" > \"$1\"");
  EXPECT_EQ(Run({"presets", "edit", "mine"}, "", {{"EDITOR", good}}).status, 0);
  EXPECT_EQ(TextOf("mine.toml"), "temperature = 0\n");
  const ProgramResult bad =
      Run({"presets", "edit", "mine"}, "", {{"EDITOR", Editor("echo 'temperature = 9' > \"$1\"")}});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("\nhint: nothing was changed"), std::string::npos) << bad.err;
  EXPECT_EQ(TextOf("mine.toml"), "temperature = 0\n");
  // The next edit continues with the text that was not valid. $VISUAL comes before $EDITOR, and may have arguments.
  const std::string append = Editor("sed -i 's/9/1/' \"$2\" && echo \"# $1\" >> \"$2\"");
  EXPECT_EQ(Run({"presets", "edit", "mine"}, "", {{"EDITOR", "false"}, {"VISUAL", append + " 'a b'"}}).status, 0);
  EXPECT_EQ(TextOf("mine.toml"), "temperature = 1\n# a b\n");
  EXPECT_EQ(Run({"presets", "edit", "mine"}, "", {{"EDITOR", "false"}}).status, 2);
  EXPECT_EQ(TextOf("mine.toml"), "temperature = 1\n# a b\n");
  for (const auto& entry : fs::directory_iterator(directory_)) EXPECT_EQ(entry.path().filename(), "mine.toml");
}

TEST_F(PresetsProgramTest, EditOfAShippedPresetMakesAFileThatHidesItUntilItIsDeleted) {
  const auto edit = [&](const std::string& editor) {
    return Run({"presets", "edit", "translate"}, "", {{"EDITOR", editor}});
  };
  EXPECT_EQ(edit("true").err, "unchanged\n");
  EXPECT_TRUE(fs::is_empty(directory_));
  const std::string shipped = Run({"presets", "show", "translate"}).out;
  EXPECT_EQ(shipped.find("# ships with vllmcli (shipped)\n# vllmcli batch texts.txt --preset translate"), 0u)
      << shipped;
  EXPECT_EQ(edit(Editor("echo '# mine' >> \"$1\"")).status, 0);
  const Json shown = Json::parse(Run({"presets", "show", "translate", "--json"}).out);
  EXPECT_EQ(shown["origin"], "user");
  EXPECT_EQ(shown["hides_shipped"], true);
  EXPECT_EQ(shown["variables"], Json({{"language", "English"}}));
  EXPECT_EQ(shown["text"], shipped.substr(shipped.find('\n') + 1) + "# mine\n");
  EXPECT_EQ(Run({"presets", "rm", "translate"}).err, "translate is the shipped preset again\n");
  EXPECT_EQ(Run({"presets", "show", "translate"}).out, shipped);
  const ProgramResult again = Run({"presets", "rm", "translate"});
  EXPECT_EQ(again.status, 1);
  EXPECT_NE(again.err.find("ships with vllmcli and cannot be deleted"), std::string::npos) << again.err;
}

TEST_F(PresetsProgramTest, RmDeletesNothingIfOneNameIsMissing) {
  Preset("a", "");
  EXPECT_EQ(Run({"presets", "rm", "a", "b"}).status, 1);
  EXPECT_TRUE(fs::exists(directory_ + "/a.toml"));
  EXPECT_EQ(Run({"presets", "rm", "../presets/a"}).status, 2);
  EXPECT_EQ(Run({"presets", "rm", "a"}).status, 0);
  EXPECT_FALSE(fs::exists(directory_ + "/a.toml"));
}

TEST_F(PresetsProgramTest, ListShowsInvalidFilesAndDrivesNoTerminal) {
  Preset("bad", "description = 'x'\nnosuch = 1\n");
  Preset("hostile", "description = \"a\\u001b]0;title\\u0007b\"\n");
  const ProgramResult list = Run({"presets"});
  EXPECT_EQ(list.status, 0);
  EXPECT_NE(list.out.find("bad               invalid: "), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("a<1b>]0;title<07>b (yours)"), std::string::npos) << list.out;
  EXPECT_EQ(list.out.find('\x1b'), std::string::npos);
  EXPECT_EQ(Json::parse(Run({"presets", "list", "--json"}).out).size(), 7u);
  const ProgramResult show = Run({"presets", "show", "bad"});
  EXPECT_EQ(show.status, 2);
  EXPECT_NE(show.err.find("bad.toml:2:1: nosuch: unknown key"), std::string::npos) << show.err;
}

}  // namespace
}  // namespace vllm::app
