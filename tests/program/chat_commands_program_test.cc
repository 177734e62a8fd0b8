// Runs the commands of a chat that act on answers and conversations, and run with -c.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/program/chats_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

class ChatCommandsTest : public ChatsProgramTest {
 protected:
  // Imports a conversation with one question and this answer.
  void Import(const std::string& user, const std::string& answer) const {
    const auto message = [](int id, const char* role, const std::string& text) {
      return Json{{"id", id},
                  {"parent", id - 1},
                  {"role", role},
                  {"text", text},
                  {"ids_begin", 0},
                  {"token_ids", Json::array()},
                  {"context_first", 0},
                  {"model", ""},
                  {"model_digest", "0"},
                  {"sampling_params", ""},
                  {"finish_reason", "stop"},
                  {"created_ms", 1},
                  {"finished_ms", 1}};
    };
    const Json chat = {{"id", 1},
                       {"title", "imported"},
                       {"created_ms", 1},
                       {"updated_ms", 1},
                       {"current_message", 2},
                       {"messages", {message(1, "user", "question"), message(2, "assistant", answer)}}};
    const std::string file = temp_.Write(user + ".json", chat.dump());
    const ProgramResult result = RunProgram({"chats", "import", file}, As(user));
    ASSERT_EQ(result.status, 0) << result.err;
  }
};

// Returns the token ids of all answers in the order in which they were stored.
std::vector<std::vector<int32_t>> AnswerIds(const Json& chat) {
  std::vector<std::vector<int32_t>> ids;
  for (const Json& message : chat["messages"]) {
    if (message["role"] == "assistant") ids.push_back(message["token_ids"]);
  }
  return ids;
}

TEST_F(ChatCommandsTest, SeveralAnswersAtOnceEqualRegeneratedOnes) {
  const Flags flags = {"-t", "1.5"};
  Chat("regenerated", "first\nsecond\n/regen\n/regen\n/regen\n/regen\n", flags);
  const ProgramResult result = Chat("together", "first\nsecond\n/answers 4\n", flags);
  EXPECT_NE(result.err.find("[answer 2 of 5 is the current one;"), std::string::npos) << result.err;
  const Json together = Show("together");
  const auto ids = AnswerIds(together);
  ASSERT_EQ(ids.size(), 6u);
  EXPECT_NE(ids[2], ids[3]);
  EXPECT_EQ(ids, AnswerIds(Show("regenerated")));
  EXPECT_EQ(together["current_message"], together["messages"][4]["id"]);
}

TEST_F(ChatCommandsTest, SeveralAnswersWithoutASeedAreRepeatedWithTheStoredSeeds) {
  const Flags base = {"chat", "-m", model_, "-n", "12", "--ignore-eos", "-t", "1.5"};
  ASSERT_EQ(RunProgram(base, As("together", "first\n/answers 3\n")).status, 0);
  const Json together = Show("together");
  for (size_t i = 2; i < 5; ++i) {
    const Json params = Json::parse(together["messages"][i]["sampling_params"].get<std::string>());
    Chat("fresh" + std::to_string(i), "first\n", {"-t", "1.5", "--seed", params["seed"].dump()});
    EXPECT_EQ(AnswerIds(Show("fresh" + std::to_string(i)))[0], AnswerIds(together)[i - 1]) << i;
  }
}

TEST_F(ChatCommandsTest, PickedAnswerIsContinued) {
  Chat("picked", "first\n/answers 3\n/pick 3\nsecond\n", {"-t", "1.5"});
  Chat("fresh", "first\n/set seed 5\nsecond\n", {"-t", "1.5", "--seed", "7"});
  EXPECT_EQ(Branch(Show("picked")), Branch(Show("fresh")));
  const ProgramResult result = Chat("picked", "/pick 9\n/answers\n/answers 0\n/answers 99\n/answers x\n", {"-c"});
  EXPECT_NE(result.err.find("there is no answer 9"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("not a number of answers (1 to 16)"), std::string::npos) << result.err;
}

TEST_F(ChatCommandsTest, SeveralAnswersWithTemperature0AreRejected) {
  const ProgramResult result = Chat("same", "first\n/answers 2\n", {"-t", "0"});
  EXPECT_NE(result.err.find("with temperature 0, all answers are the same"), std::string::npos) << result.err;
  EXPECT_EQ(Show("same")["messages"].size(), 2u);
}

TEST_F(ChatCommandsTest, InterruptedAnswersKeepTheirTokens) {
  const std::string model = CopyGuideModel(temp_.path() + "/long", {.context = 100000});
  const Flags flags = {"chat", "-m", model, "--ignore-eos", "--seed", "5", "-t", "1.5"};
  PtyProgram chat(flags, As("cut").environment);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("first\r");
  ASSERT_TRUE(chat.WaitFor("first\r\n")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(" ")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/answers 2\r");
  ASSERT_TRUE(chat.WaitFor("[answer 2]")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("is the current one")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  const Json stored = Show("cut");
  // The second answer may not have had a token yet.
  ASSERT_GE(stored["messages"].size(), 3u);
  for (size_t i = 1; i < stored["messages"].size(); ++i) {
    EXPECT_EQ(stored["messages"][i]["finish_reason"], "abort");
    EXPECT_FALSE(stored["messages"][i]["token_ids"].empty());
  }
}

TEST_F(ChatCommandsTest, AnswerIsCopiedThroughTheTerminal) {
  Import("copy", "Text\n\n```python\nprint(1)\n```\n\n```\nplain\n```\n");
  PtyProgram chat({"chat", "-c", "-m", model_}, As("copy").environment);
  ASSERT_TRUE(chat.WaitFor(">>> question")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/copy 1\r");
  ASSERT_TRUE(chat.WaitFor("\x1b]52;c;cHJpbnQoMSkK\x07")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("[code block 1: 9 bytes sent to the terminal's clipboard (OSC 52)")) << chat.output();
  chat.Send("/copy 3\r");
  ASSERT_TRUE(chat.WaitFor("there is no code block 3; the last answer has:")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("1  python, 1 line: print(1)")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("2  1 line: plain")) << chat.output();
  chat.Send("/copy\r");
  ASSERT_TRUE(chat.WaitFor("\x1b]52;c;VGV4dAoK")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatCommandsTest, AnswerIsCopiedWithoutColorsToo) {
  Import("copy", "Text");
  ProgramOptions options = As("copy");
  options.environment["NO_COLOR"] = "1";
  PtyProgram chat({"chat", "-c", "-m", model_}, options.environment);
  ASSERT_TRUE(chat.WaitFor(">>> question")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/copy\r");
  ASSERT_TRUE(chat.WaitFor("\x1b]52;c;VGV4dA==\x07")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatCommandsTest, ImportOfAMissingFileCreatesNoDatabase) {
  const ProgramResult result = RunProgram({"chats", "import", temp_.path() + "/missing.json"}, As("nobody"));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("/missing.json: No such file"), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(Database("nobody")));
}

TEST_F(ChatCommandsTest, SearchShowsALineForEachHit) {
  Import("lines", "A whale\n\n- swims\n\tfar\n");
  const std::string expected = "1  imported: A whale - swims far\n";
  EXPECT_EQ(RunProgram({"chats", "search", "whale"}, As("lines")).out, expected);
  const ProgramResult chat = Chat("lines", "/search whale\n/search\n", {"-c"});
  EXPECT_NE(chat.err.find("  " + expected), std::string::npos) << chat.err;
  EXPECT_NE(chat.err.find("/search: expects a text"), std::string::npos) << chat.err;
}

TEST_F(ChatCommandsTest, CodeBlockIsWrittenToAFileThatDidNotExist) {
  Import("save", "- item\n\n  ```sh\n  ls \x1b[31m\n    -l\n  ```\n");
  const std::string file = temp_.path() + "/code.sh";
  const ProgramResult result =
      Chat("save", "/save-code 1 " + file + "\n/save-code 1 " + file + "\n/save-code 2 x\n/save-code\n", {"-c"});
  std::ifstream stream(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "ls \x1b[31m\n  -l\n");
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  EXPECT_NE(result.err.find("File exists"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("there is no code block 2"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("expects a number and a file"), std::string::npos) << result.err;
}

TEST_F(ChatCommandsTest, PathsMayHaveEscapedBlanks) {
  Import("paths", "```sh\nls\n```\n");
  const std::string typed = temp_.path() + "/my\\ ";
  const ProgramResult result =
      Chat("paths", "/save-code 1 " + typed + "code.sh\n/export " + typed + "chat.md\n/export\n", {"-c"});
  EXPECT_TRUE(fs::exists(temp_.path() + "/my code.sh")) << result.err;
  EXPECT_TRUE(fs::exists(temp_.path() + "/my chat.md")) << result.err;
  EXPECT_NE(result.err.find("/export: name a new .md, .html or .json file"), std::string::npos) << result.err;
}

TEST_F(ChatCommandsTest, TreeIsShownAndAMessageChosen) {
  Chat("tree", "first\n/answers 2\nsecond\n/edit\nthird\n", {"-t", "1.5"});
  const ProgramResult printed = Chat("tree", "/tree\n", {"-c"});
  EXPECT_NE(printed.err.find("│  ├─ >>> second\n"), std::string::npos) << printed.err;
  const Json before = Show("tree");
  PtyProgram chat({"chat", "-c", "-m", model_, "-n", "12", "--ignore-eos", "--seed", "5"}, As("tree").environment);
  ASSERT_TRUE(chat.WaitFor(">>> third")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/tree\r");
  const auto shows = [](const char* text) {
    return [text](const TerminalEmulator& terminal) { return terminal.Screen().find(text) != std::string::npos; };
  };
  ASSERT_TRUE(chat.WaitForScreen(shows("q: back"))) << chat.terminal().Screen();
  EXPECT_TRUE(chat.terminal().state().alternate_screen);
  EXPECT_NE(chat.terminal().Screen().find("├─ >>> second"), std::string::npos) << chat.terminal().Screen();
  chat.Send("/second\r\r");  // the filter leaves one row
  ASSERT_TRUE(chat.WaitFor("replaces this question in a new branch")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> second")) << chat.output();
  EXPECT_FALSE(chat.terminal().state().alternate_screen);
  chat.Send(" try\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 12 tokens")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/tree\r");
  ASSERT_TRUE(chat.WaitForScreen(shows("q: back"))) << chat.terminal().Screen();
  chat.Send("q");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
  const Json after = Show("tree");
  ASSERT_EQ(after["messages"].size(), before["messages"].size() + 2);
  const Json& question = after["messages"][after["messages"].size() - 2];
  EXPECT_EQ(question["text"], "second try");
  EXPECT_EQ(question["parent"], before["messages"][2]["id"]);  // the first of the two answers
}

TEST_F(ChatCommandsTest, ControlCCancelsAnEdit) {
  Chat("edit", "first\nsecond\n");
  const Json before = Show("edit");
  PtyProgram chat({"chat", "-c", "-m", model_, "-n", "12", "--ignore-eos", "--seed", "5"}, As("edit").environment);
  ASSERT_TRUE(chat.WaitFor(">>> second")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/edit 2\r");
  ASSERT_TRUE(chat.WaitFor(">>> first")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor("[the question is not replaced]")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("draft");
  ASSERT_TRUE(chat.WaitFor("draft")) << chat.output();
  chat.Send("\x03");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("third\r");
  ASSERT_TRUE(chat.WaitFor("[cut off after 12 tokens")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  const std::string note = "[the question is not replaced]";
  EXPECT_EQ(chat.output().find(note), chat.output().rfind(note)) << chat.output();
  const Json after = Show("edit");
  ASSERT_EQ(after["messages"].size(), before["messages"].size() + 2);
  const Json& question = after["messages"][after["messages"].size() - 2];
  EXPECT_EQ(question["text"], "third");
  EXPECT_EQ(question["parent"], before["current_message"]);
}

TEST_F(ChatCommandsTest, ConversationIsChosenFromAListAndAnotherDeleted) {
  Chat("pick", "about elephants\n/new\nabout zebras\n/new\nabout lions\n");
  PtyProgram chat({"chat", "--resume", "-m", model_}, As("pick").environment);
  const auto shows = [](const char* text) {
    return [text](const TerminalEmulator& terminal) { return terminal.Screen().find(text) != std::string::npos; };
  };
  ASSERT_TRUE(chat.WaitForScreen(shows("q: back"))) << chat.terminal().Screen();
  chat.Send("jd");
  ASSERT_TRUE(chat.WaitForScreen(shows("Delete 2  about zebras?"))) << chat.terminal().Screen();
  chat.Send("y");
  ASSERT_TRUE(chat.WaitForScreen(shows("of 2"))) << chat.terminal().Screen();
  chat.Send("/elephant\r\r");
  ASSERT_TRUE(chat.WaitFor(">>> about elephants")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("/resume\r");
  ASSERT_TRUE(chat.WaitForScreen(shows("q: back"))) << chat.terminal().Screen();
  chat.Send("dy");
  ASSERT_TRUE(chat.WaitForScreen(shows("This conversation is open here"))) << chat.terminal().Screen();
  chat.Send("\x1b");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  const Json left = Json::parse(RunProgram({"chats", "--json"}, As("pick")).out);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0]["title"], "about lions");
  EXPECT_EQ(left[1]["title"], "about elephants");
}

TEST_F(ChatCommandsTest, DeleteAsksFirst) {
  const ProgramResult asked = Chat("delete", "about elephants\n/delete\n");
  EXPECT_NE(asked.err.find("/delete yes deletes conversation 1"), std::string::npos) << asked.err;
  EXPECT_EQ(Show("delete")["messages"].size(), 2u);
  Chat("delete", "/delete yes\nabout zebras\n", {"-c"});
  EXPECT_EQ(Json::parse(RunProgram({"chats", "--json"}, As("delete")).out).size(), 1u);
  EXPECT_EQ(Branch(Show("delete", 2))[0][1], "about zebras");
  std::ifstream database(Database("delete"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(database), {}};
  EXPECT_EQ(bytes.find("elephant"), std::string::npos);
}

TEST_F(ChatCommandsTest, ForkKeepsTheTitleAndTheTimes) {
  Chat("fork", "first\n/title Name\n/fork\n/fork Other\n");
  const Json original = Show("fork", 1);
  const Json copy = Show("fork", 2);
  EXPECT_EQ(copy["title"], "Name");
  EXPECT_EQ(Show("fork", 3)["title"], "Other");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(copy["messages"][i]["created_ms"], original["messages"][i]["created_ms"]);
    EXPECT_EQ(copy["messages"][i]["finished_ms"], original["messages"][i]["finished_ms"]);
  }
}

TEST_F(ChatCommandsTest, NewConversationHasTheSystemMessageOfTheSettings) {
  Chat("system", "Hello\n", {"--system", "Be brief."});
  Chat("system", "/resume 1\nAgain\n/new\nHello\n", {"--system", "Be kind."});
  EXPECT_EQ(Branch(Show("system", 1))[0][1], "Be brief.");
  EXPECT_EQ(Branch(Show("system", 2))[0][1], "Be kind.");
}

TEST_F(ChatCommandsTest, SystemMessageOfTheConfigurationIsReportedIfItIsNotUsed) {
  const std::string config = temp_.Write("config.toml", "system = \"Be kind.\"\n");
  Chat("config", "Hello\n", {"--system", "Be brief."});
  const ProgramResult result = Chat("config", "", {"-c", "--config", config});
  EXPECT_NE(result.err.find("the system message of the configuration file is not used"), std::string::npos)
      << result.err;
}

TEST_F(ChatCommandsTest, InfoNamesTheTypeOfTheWeights) {
  const ProgramResult plain = Chat("plain", "/info\n");
  EXPECT_NE(plain.err.find("LlamaForCausalLM, bfloat16\n"), std::string::npos) << plain.err;
  const ProgramResult quantized = Chat("quantized", "/info\n", {"-q", "int4"});
  EXPECT_NE(quantized.err.find("LlamaForCausalLM, bfloat16 quantized to int4\n"), std::string::npos) << quantized.err;
}

TEST_F(ChatCommandsTest, StatsAreOfTheLastAnswerIfThereIsOne) {
  const ProgramResult none = Chat("none", "/stats\n/info\n");
  EXPECT_NE(none.err.find("no answer yet\n"), std::string::npos) << none.err;
  EXPECT_EQ(none.err.find("prompt tokens; "), std::string::npos) << none.err;
  const ProgramResult one = Chat("one", "Hello\n/stats\n/info\n");
  EXPECT_EQ(one.err.find("no answer yet"), std::string::npos) << one.err;
  EXPECT_NE(one.err.find(" cached) at "), std::string::npos) << one.err;
  EXPECT_NE(one.err.find("prompt tokens; "), std::string::npos) << one.err;
}

TEST_F(ChatCommandsTest, ModelIsSwitchedInTheConversation) {
  const std::string other = CopyGuideModel(temp_.path() + "/other", {.context = 512});
  const ProgramResult result =
      Chat("switch", "first\n/set temperature 0.5\n/model " + other + "\n/info\n/set temperature\nsecond\n");
  EXPECT_NE(result.err.find("[other, context 512 tokens; the next message makes it read the conversation]"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("[the earlier turns are from another model or chat template"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("0.5"), std::string::npos) << result.err;
  const Json stored = Show("switch");
  EXPECT_EQ(stored["messages"][1]["model"], "guide_model");
  EXPECT_EQ(stored["messages"][3]["model"], "other");
  EXPECT_EQ(Branch(stored).size(), 4u);
}

TEST_F(ChatCommandsTest, FailedSwitchKeepsTheModel) {
  const std::string broken = CopyGuideModel(temp_.path() + "/broken", {});
  for (const auto& entry : fs::directory_iterator(broken)) {
    if (entry.path().extension() != ".safetensors") continue;
    fs::remove(entry.path());  // a link to the bundled model's file
    std::ofstream(entry.path()) << "not tensors, but longer than the length of a header";
  }
  const std::string plain = CopyGuideModel(temp_.path() + "/plain", {.keeps_chat_template = false});
  Chat("whole", "first\nsecond\nthird\n");
  const ProgramResult result =
      Chat("failed", "first\n/model " + broken + "\nsecond\n/model " + plain + "\n/model /none\nthird\n");
  EXPECT_NE(result.err.find("cannot be loaded; loading guide_model again"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("has no chat template"), std::string::npos) << result.err;
  EXPECT_EQ(Branch(Show("failed")), Branch(Show("whole")));
}

TEST_F(ChatCommandsTest, FollowUpByRunEqualsOneInTheChat) {
  Chat("chat", "first\nsecond\nthird\n");
  Chat("run", "first\n");
  const Flags flags = {"-m", model_, "-n", "12", "--ignore-eos", "--seed", "5"};
  const auto run = [&](Flags words) {
    words.insert(words.end(), flags.begin(), flags.end());
    return RunProgram(words, As("run"));
  };
  const ProgramResult second = run({"run", "-c", "second"});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(run({"run", "--resume", "1", "third"}).status, 0);
  const Json branch = Branch(Show("run"));
  EXPECT_EQ(branch, Branch(Show("chat")));
  EXPECT_EQ(second.out, branch[3][1].get<std::string>() + "\n");
  const std::string config = temp_.Write("config.toml", "save = true\n");  // applies only to chats
  EXPECT_EQ(run({"run", "not stored", "--config", config}).status, 0);
  EXPECT_EQ(run({"run", "not stored"}).status, 0);
  EXPECT_EQ(run({"run", "--save", "stored"}).status, 0);
  EXPECT_EQ(Json::parse(RunProgram({"chats", "--json"}, As("run")).out).size(), 2u);
  EXPECT_EQ(run({"run", "-c", "--stream-json", "x"}).status, 2);
  EXPECT_EQ(run({"run", "--resume", "no such title", "x"}).status, 2);
}

TEST_F(ChatCommandsTest, StoredRunPrintsTheJsonOfARunThatIsNotStored) {
  const auto run = [&](Flags words) {
    const Flags base = {"run", "-m", model_, "-n", "12", "--stop", "e", "--seed", "5", "--json"};
    words.insert(words.begin(), base.begin(), base.end());
    const ProgramResult result = RunProgram(words, As("run"));
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  };
  const auto keys_of = [](const Json& json) {
    std::vector<std::string> keys;
    for (const auto& item : json.items()) keys.push_back(item.key());
    return keys;
  };
  const Json plain = run({"How do I run a batch?"});
  EXPECT_EQ(plain["outputs"][0]["stop_reason"], "e");
  const Json stored = run({"--save", "How do I run a batch?"});
  EXPECT_EQ(keys_of(stored), keys_of(plain));
  for (const char* key : {"model", "prompt_tokens", "outputs", "sampling"}) EXPECT_EQ(stored[key], plain[key]) << key;
  const Json follow_up = run({"-c", "And then?"});
  EXPECT_EQ(keys_of(follow_up), keys_of(plain));
  EXPECT_EQ(keys_of(follow_up["timings"]), keys_of(plain["timings"]));
  const Json chat = Show("run");
  ASSERT_EQ(chat["messages"].size(), 4u);
  for (const auto& [json, index] : {std::pair(stored, 1), std::pair(follow_up, 3)}) {
    const Json& message = chat["messages"][static_cast<size_t>(index)];
    EXPECT_EQ(json["outputs"][0]["text"], message["text"]);
    EXPECT_EQ(json["outputs"][0]["token_ids"], message["token_ids"]);
    EXPECT_EQ(json["outputs"][0]["finish_reason"], message["finish_reason"]);
    EXPECT_EQ(json["prompt_tokens"], message["ids_begin"]);
  }
}

TEST_F(ChatCommandsTest, EphemeralChatWritesNoFile) {
  ProgramOptions options = As("gone", "first\n/answers 2\n/title x\n/edit\nsecond\n");
  for (const char* name : {"XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME"}) {
    options.environment[name] = temp_.path() + "/gone";
  }
  const ProgramResult result = RunProgram({"chat", "-m", model_, "-n", "4", "--seed", "1", "--ephemeral"}, options);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_FALSE(fs::exists(temp_.path() + "/gone"));
  options.input.clear();
  EXPECT_EQ(RunProgram({"run", "-m", model_, "--ephemeral", "-c", "more"}, options).status, 2);
  EXPECT_FALSE(fs::exists(temp_.path() + "/gone"));
}

TEST_F(ChatCommandsTest, UnsentMessageIsThereAfterASignal) {
  Chat("draft", "first\n");
  for (const int signal_number : {SIGTERM, SIGHUP}) {
    PtyProgram chat({"chat", "-c", "-m", model_}, As("draft").environment);
    ASSERT_TRUE(chat.WaitFor(">>> first")) << chat.output();
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    if (signal_number == SIGTERM) {
      chat.Send("half a tho");
      ASSERT_TRUE(chat.WaitFor("half a tho")) << chat.output();
    } else {
      ASSERT_TRUE(chat.WaitFor("half a tho")) << chat.output();
    }
    kill(chat.pid(), signal_number);
    EXPECT_EQ(chat.WaitForExit(), 128 + signal_number);
    EXPECT_TRUE(chat.TerminalIsRestored());
  }
  EXPECT_EQ(Show("draft")["messages"].size(), 2u);
  PtyProgram chat({"chat", "-c", "-m", model_, "-n", "4"}, As("draft").environment);
  ASSERT_TRUE(chat.WaitFor("half a tho")) << chat.output();
  chat.Send("ught\r");
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_EQ(Branch(Show("draft"))[2][1], "half a thought");
  const ProgramResult result = Chat("draft", "", {"-c"});
  EXPECT_EQ(result.status, 0);
}

}  // namespace
}  // namespace vllm::app
