// Tests presets: their files, names, variables and precedence, and the presets that ship with the program.
#include "app/presets/preset_prompt.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "app/presets/preset_store.h"
#include "app/presets/shipped_presets.h"
#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class PresetTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("XDG_CONFIG_HOME", temp_.path().c_str(), 1);
    std::filesystem::create_directories(temp_.path() + "/vllmcli/presets");
  }
  void TearDown() override { unsetenv("XDG_CONFIG_HOME"); }

  void Write(const std::string& name, const std::string& text) const {
    temp_.Write("vllmcli/presets/" + name + ".toml", text);
  }
  static std::string ParseError(const std::string& text) {
    return MessageOf<ConfigError>([&] { ParsePreset("p", text, "p.toml"); });
  }
  static PresetPrompt Prompt(const std::string& text, const std::vector<std::string>& assignments = {}) {
    return PresetPrompt(ParsePreset("p", text, "p.toml"), assignments);
  }

  TempDirectory temp_;
};

TEST_F(PresetTest, APromptIsFilledWithTheInputAndTheVariables) {
  const PresetPrompt prompt =
      Prompt("prompt = '{{{input}}} to {language}, {language}'\n[variables]\nlanguage = 'French'\n");
  EXPECT_EQ(prompt.Fill("hello"), "{hello} to French, French");
  EXPECT_EQ(Prompt(prompt.preset().text, {"language=a=b"}).Fill("hello"), "{hello} to a=b, a=b");
}

TEST_F(PresetTest, ValuesAreNotFilledAgain) {
  EXPECT_EQ(Prompt("prompt = '{a} {input}'", {"a={input}"}).Fill("{a}"), "{input} {a}");
}

TEST_F(PresetTest, APromptWithoutInputIsFollowedByTheText) {
  EXPECT_EQ(Prompt("prompt = 'Say it:'").Fill("x"), "Say it:\nx");
  EXPECT_EQ(Prompt("prompt = 'Say it:'").Fill(""), "Say it:");
  EXPECT_EQ(Prompt("system = 'S'").Fill("x"), "x");
}

TEST_F(PresetTest, AMissingVariableIsAnErrorThatNamesIt) {
  const PresetPrompt prompt = Prompt("prompt = '{input} {language}'");
  EXPECT_EQ(MessageOf<ConfigError>([&] { prompt.CheckVariables(); }), "preset p: the variable language has no value");
  prompt.CheckVariables({"id", "language"});
  const std::vector<std::string> columns = {"id", "language"};
  const std::vector<std::string> fields = {"7", "Latin"};
  EXPECT_EQ(prompt.Fill("x", columns, fields), "x Latin");
  EXPECT_EQ(MessageOf<ConfigError>([&] { Prompt("system = '{tone}'").System(); }),
            "preset p: the variable tone has no value");
}

TEST_F(PresetTest, AValueOnTheCommandLineOverridesAColumn) {
  const PresetPrompt prompt = Prompt("prompt = '{a}{b}'\n[variables]\na = '1'\nb = '2'\n", {"a=3"});
  const std::vector<std::string> columns = {"a", "b"};
  const std::vector<std::string> fields = {"4", "5"};
  EXPECT_EQ(prompt.Fill("", columns, fields), "35");
  EXPECT_EQ(prompt.Fill(""), "32");
}

TEST_F(PresetTest, AnAssignmentMustNameAVariableOfThePreset) {
  const auto error_of = [](const std::string& assignment) {
    return MessageOf<ConfigError>([&] { Prompt("prompt = '{input} {language}'", {assignment}); });
  };
  EXPECT_EQ(error_of("langage=x"), "--param: preset p has no variable langage; did you mean language?");
  EXPECT_EQ(error_of("language"), "--param: must be NAME=VALUE (language)");
  EXPECT_EQ(error_of("=x"), "--param: must be NAME=VALUE (=x)");
  EXPECT_EQ(error_of("input=x"), "--param: input is the user's text and cannot be set");
}

TEST_F(PresetTest, ErrorsNameTheFileTheLineAndTheColumn) {
  EXPECT_EQ(ParseError("\n temprature = 1"), "p.toml:2:2: temprature: unknown key; did you mean temperature?");
  EXPECT_EQ(ParseError("temperature = 'x'"), "p.toml:1:1: temperature: must be a number (x)");
  EXPECT_EQ(ParseError("prompt = '{'"), "p.toml:1:1: prompt: unclosed brace; write {{ for a literal brace");
  EXPECT_EQ(ParseError("prompt = '}'"), "p.toml:1:1: prompt: unmatched closing brace; write }} for a literal brace");
  EXPECT_EQ(ParseError("prompt = '{\"a\": 1}'"), "p.toml:1:1: prompt: {\"a\": 1} is not the name of a variable");
  EXPECT_EQ(ParseError("system = '{input}'"), "p.toml:1:1: system: {input} is allowed only in prompt");
  EXPECT_EQ(ParseError("system = ['a']"), "p.toml:1:1: system: must be a single value, not an array");
  EXPECT_EQ(ParseError("[run]\nseed = 1"), "p.toml:1:1: [run]: unknown table; a preset has only [variables]");
  EXPECT_EQ(ParseError("prompt = '{tone}'\n[variables]\ntune = 'x'"),
            "p.toml:3:1: [variables] tune: neither system nor prompt uses this variable; did you mean tone?");
  EXPECT_EQ(ParseError("[variables]\ninput = 'x'"),
            "p.toml:2:1: [variables] input: input is the user's text and has no default");
  EXPECT_EQ(ParseError("model ="), "p.toml:1:8: missing value");
}

TEST_F(PresetTest, OnlySettingsOfRequestsAndTheModelAreKeys) {
  for (const char* key : {"threads-per-rank", "output", "preset", "context-shift", "json"}) {
    EXPECT_NE(ParseError(std::string(key) + " = 1").find(": unknown key"), std::string::npos) << key;
  }
  EXPECT_EQ(ParsePreset("p", "model = 'm'\ntop_p = 0.5\nstop = ['a', 'b']\nschema = 'a int'\n", "f").settings.size(),
            4u);
}

TEST_F(PresetTest, ANameCannotLeadOutOfTheDirectory) {
  for (const char* name : {"a", "commit-message", "v1.2_x", "0"}) EXPECT_TRUE(IsPresetName(name)) << name;
  for (const char* name : {"", ".", "..", "../a", "a/b", "/a", ".a", "-a", "a b", "a\n", "\xC3\xA4", "off"}) {
    EXPECT_FALSE(IsPresetName(name)) << name;
    EXPECT_THROW(LoadPreset(name), ConfigError) << name;
  }
  EXPECT_FALSE(IsPresetName(std::string("a\0b", 3)));
  EXPECT_TRUE(IsPresetName(std::string(64, 'a')));
  EXPECT_FALSE(IsPresetName(std::string(65, 'a')));
}

TEST_F(PresetTest, AUsersFileHidesTheShippedPreset) {
  EXPECT_EQ(LoadPreset("summarize").path, "");
  Write("summarize", "description = 'mine'\n");
  EXPECT_EQ(LoadPreset("summarize").description, "mine");
  EXPECT_EQ(LoadPreset("summarize").path, PresetPath("summarize"));
}

TEST_F(PresetTest, TheListIsSortedAndContainsInvalidFiles) {
  Write("summarize", "description = 'mine'\n");
  Write("broken", "tempo = 1\n");
  Write(".hidden", "");
  temp_.Write("vllmcli/presets/notes.txt", "");
  std::vector<std::string> lines;
  for (const PresetSummary& summary : ListPresets()) {
    lines.push_back(summary.name + (summary.is_users ? " user" : "") + (summary.hides_shipped ? " hides" : "") +
                    (summary.error.empty() ? "" : " error"));
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"broken user error", "commit-message", "explain", "extract",
                                             "summarize user hides", "translate"}));
}

TEST_F(PresetTest, AnUnknownPresetSuggestsTheNearestName) {
  EXPECT_EQ(MessageOf<ConfigError>([] { LoadPreset("sumarize"); }),
            "preset sumarize: there is none; did you mean summarize?");
  EXPECT_EQ(MessageOf<ConfigError>([] { LoadPreset("none"); }), "preset none: there is none");
}

TEST_F(PresetTest, TheShippedPresetsAreValidAndHaveDescriptions) {
  ASSERT_EQ(ShippedPresets().size(), 5u);
  EXPECT_TRUE(std::is_sorted(ShippedPresets().begin(), ShippedPresets().end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  for (const ShippedPreset& shipped : ShippedPresets()) {
    const Preset preset = LoadPreset(std::string(shipped.name));
    EXPECT_FALSE(preset.description.empty()) << shipped.name;
    EXPECT_TRUE(preset.prompt ? preset.prompt->Uses("input") : preset.system.has_value()) << shipped.name;
  }
}

TEST_F(PresetTest, FlagsOverrideThePresetAndThePresetOverridesTheEnvironmentAndTheFile) {
  Write("p", "model = 'preset'\ntemperature = 0.1\ntop-p = 0.2\nsystem = 'S'\nn = 3\n");
  Settings settings;
  settings.command = Command::kChat;
  const auto set = [&](const char* name, const char* value, SettingSource source) {
    settings.Set(*FindFlag(name), {value}, source, name);
  };
  set("temperature", "0.7", SettingSource::kConfigFile);
  set("model", "environment", SettingSource::kEnvironment);
  set("top-p", "0.9", SettingSource::kCommandLine);
  set("preset", "p", SettingSource::kCommandLine);
  ASSERT_TRUE(PresetOf(settings));
  EXPECT_EQ(settings.Number("temperature"), 0.1);
  EXPECT_EQ(settings.SourceOf("temperature"), SettingSource::kPreset);
  EXPECT_EQ(settings.Text("model"), "preset");
  EXPECT_EQ(settings.Number("top-p"), 0.9);
  EXPECT_EQ(settings.Text("system"), "S");
  EXPECT_FALSE(settings.Has("n"));  // a chat has no --n
  // Without the preset, what it has overridden counts again.
  settings.Remove(SettingSource::kPreset);
  EXPECT_EQ(settings.Number("temperature"), 0.7);
  EXPECT_EQ(settings.Text("model"), "environment");
  EXPECT_FALSE(settings.Has("system"));
}

TEST_F(PresetTest, AParameterWithoutAPresetIsAnError) {
  Settings settings;
  settings.Set(*FindFlag("param"), {"a=b"}, SettingSource::kCommandLine, "--param");
  EXPECT_THROW(PresetOf(settings), ConfigError);
}

TEST_F(PresetTest, TheTextOfAUserIsFoundInItsPrompt) {
  const PresetPrompt prompt = Prompt("prompt = 'Translate into {language}: {input}.'", {"language=French"});
  for (const std::string text : {"", "hello", ": {input}.", "a\nb"}) EXPECT_EQ(prompt.InputOf(prompt.Fill(text)), text);
  EXPECT_EQ(prompt.InputOf("hello"), std::nullopt);
  EXPECT_EQ(prompt.InputOf("Translate into German: hello."), std::nullopt);
  EXPECT_EQ(Prompt("prompt = '{input} {input}'").InputOf("a a"), std::nullopt);
  EXPECT_EQ(Prompt("system = 'S'").InputOf("a"), std::nullopt);
}

TEST_F(PresetTest, AFileThatIsTooLargeOrNoFileIsAnError) {
  Write("large", "description = '" + std::string(300'000, 'x') + "'\n");
  EXPECT_THROW(LoadPreset("large"), ConfigError);
  std::filesystem::create_directory(temp_.path() + "/vllmcli/presets/directory.toml");
  EXPECT_THROW(LoadPreset("directory"), ConfigError);
}

}  // namespace
}  // namespace vllm::app
