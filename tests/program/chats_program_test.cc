// Runs chats that are stored: a conversation continues in later processes with exactly the same tokens, also after kill
// -9, and its branches equal fresh conversations. Also runs the chats command.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/program/chats_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

TEST_F(ChatsProgramTest, ChatContinuedInOtherProcessesHasTheTokensOfOneThatNeverEnded) {
  Chat("whole", "How do I run a batch?\nAnd then?\nWhat is a seed?\n");
  Chat("parts", "How do I run a batch?\n");
  Chat("parts", "And then?\n", {"-c"});
  Chat("parts", "What is a seed?\n", {"--resume", "1"});
  const Json whole = Branch(Show("whole"));
  ASSERT_EQ(whole.size(), 6u);
  EXPECT_EQ(Branch(Show("parts")), whole);
}

TEST_F(ChatsProgramTest, ConversationContinuedInOtherProcessesIsCutInTheSamePlaces) {
  const Flags small = {"--max-model-len", "256", "--system", "Be brief."};
  std::vector<std::string> lines;
  for (int i = 0; i < 16; ++i) lines.push_back("Tell me about flag number " + std::to_string(i) + ", please.\n");
  std::string all;
  for (const std::string& line : lines) all += line;
  const ProgramResult whole_chat = Chat("whole", all + "/info\n", small);
  for (size_t i = 0; i < lines.size(); i += 4) {
    const std::string part = lines[i] + lines[i + 1] + lines[i + 2] + lines[i + 3];
    i == 0 ? Chat("parts", part, small) : Chat("parts", part, {"--max-model-len", "256", "-c"});
  }
  const Json whole = Branch(Show("whole"));
  ASSERT_EQ(whole.size(), 33u);
  EXPECT_EQ(Branch(Show("parts")), whole);
  // A question whose ids are not those of the answer before it and more: a cut. The chat has reported each.
  int64_t num_cuts = 0;
  const Json shown = Show("whole");
  for (const Json& message : shown["messages"]) {
    if (message["role"] == "user" && message["ids_begin"] == 0) ++num_cuts;
  }
  EXPECT_GE(--num_cuts, 2);  // not the first question
  int64_t num_reported = 0;
  int64_t num_dropped = 0;
  for (size_t at = 0; (at = whole_chat.err.find(" dropped]", at)) != std::string::npos; ++at) {
    ++num_reported;
    const size_t begin = whole_chat.err.rfind("the oldest ", at) + std::string("the oldest ").size();
    num_dropped += whole_chat.err[begin] == 't' ? 1 : std::stoi(whole_chat.err.substr(begin));
  }
  EXPECT_EQ(num_reported, num_cuts);
  EXPECT_NE(
      whole_chat.err.find("  outside  the oldest " + std::to_string(num_dropped) + " turns (context-shift half)\n"),
      std::string::npos)
      << whole_chat.err;
  // A chat that continues says it again, because its context begins there.
  const ProgramResult again = Chat("whole", "", {"--max-model-len", "256", "-c"});
  EXPECT_NE(again.err.find("[the oldest " + std::to_string(num_dropped) + " turns are outside the context]"),
            std::string::npos)
      << again.err;
}

TEST_F(ChatsProgramTest, WithoutContextShiftAFullContextSendsNothingUntilThereIsSpace) {
  const std::string question = "Tell me about the flag, please.\n";
  std::string questions;
  for (int i = 0; i < 16; ++i) questions += question;
  const ProgramResult off =
      Chat("off", questions + "/set context-shift\n", {"--max-model-len", "256", "--context-shift", "off"});
  EXPECT_NE(off.err.find("the message was not sent: the context of 256 tokens is full"), std::string::npos) << off.err;
  EXPECT_NE(off.err.find("\nhint: /new begins a new conversation; /undo"), std::string::npos) << off.err;
  EXPECT_NE(off.err.find("context-shift               off       (command line)"), std::string::npos) << off.err;
  EXPECT_EQ(off.err.find(" dropped]"), std::string::npos);
  const size_t num_sent = Branch(Show("off")).size() / 2;
  EXPECT_LT(num_sent, 16u);
  // As long as it fits, a chat with the other policy has the same tokens.
  std::string fits;
  for (size_t i = 0; i < num_sent; ++i) fits += question;
  Chat("half", fits, {"--max-model-len", "256"});
  EXPECT_EQ(Branch(Show("half")), Branch(Show("off")));
  // /undo makes space, and so does the other policy.
  const Flags more = {"--max-model-len", "256", "--context-shift", "off", "-c"};
  EXPECT_EQ(Chat("off", "/undo 2\nWhy?\n", more).err.find("not sent"), std::string::npos);
  const ProgramResult shifted = Chat("off", questions + "/set context-shift half\n" + question, more);
  EXPECT_NE(shifted.err.find(" dropped]"), std::string::npos) << shifted.err;
}

TEST_F(ChatsProgramTest, ConversationWithASystemMessageKeepsIt) {
  Chat("whole", "Hello\nAgain\n", {"--system", "Be brief."});
  Chat("parts", "Hello\n", {"--system", "Be brief."});
  Chat("parts", "Again\n", {"-c"});
  const Json whole = Branch(Show("whole"));
  ASSERT_EQ(whole.size(), 5u);
  EXPECT_EQ(whole[0][0], "system");
  EXPECT_EQ(Branch(Show("parts")), whole);
}

TEST_F(ChatsProgramTest, UndoneTurnIsNotInTheCurrentBranch) {
  Chat("fresh", "first\nthird\n");
  Chat("undone", "first\nsecond\n/undo\nthird\n");
  EXPECT_EQ(Branch(Show("undone")), Branch(Show("fresh")));
  EXPECT_EQ(Show("undone")["messages"].size(), 6u);  // the undone turn is still stored
}

TEST_F(ChatsProgramTest, RedoRestoresTheTurn) {
  Chat("fresh", "first\nsecond\nthird\n");
  Chat("redone", "first\nsecond\n/undo 2\n/redo\nthird\n");
  EXPECT_EQ(Branch(Show("redone")), Branch(Show("fresh")));
}

TEST_F(ChatsProgramTest, EditedQuestionEqualsAFreshConversation) {
  Chat("fresh", "other\nlast\n");
  Chat("edited", "first\nsecond\n/edit 2\nother\nlast\n");
  EXPECT_EQ(Branch(Show("edited")), Branch(Show("fresh")));
}

TEST_F(ChatsProgramTest, AnswerWithAnotherSeedEqualsAFreshConversation) {
  Chat("fresh", "first\nsecond\n", {"--seed", "9"});
  Chat("retried", "first\n/retry --seed 9\n/set seed 9\nsecond\n");
  EXPECT_EQ(Branch(Show("retried")), Branch(Show("fresh")));
  // Without a new seed, the second answer has the seed of the second sequence of a request.
  Chat("six", "first\n", {"--seed", "6"});
  Chat("again", "first\n/regen\n");
  EXPECT_EQ(Branch(Show("again")), Branch(Show("six")));
}

TEST_F(ChatsProgramTest, SiblingsAreReachedWithNextAndPrev) {
  Chat("plain", "first\nsecond\n");
  Chat("moved", "first\n/regen temperature=0\n/prev\nsecond\n");
  EXPECT_EQ(Branch(Show("moved")), Branch(Show("plain")));
  const ProgramResult result = Chat("moved", "/next\n/next\n", {"-c"});
  EXPECT_NE(result.err.find("[there is no later version]"), std::string::npos) << result.err;
}

TEST_F(ChatsProgramTest, ForkContinuesWithoutTheOriginal) {
  Chat("whole", "first\nsecond\n");
  Chat("forked", "first\n/fork\nsecond\n");
  EXPECT_EQ(Branch(Show("forked", 2)), Branch(Show("whole")));
  EXPECT_EQ(Show("forked", 1)["messages"].size(), 2u);
}

TEST_F(ChatsProgramTest, AnswerCutOffByItsLengthContinuesWithTheTokensOfALongerOne) {
  Chat("whole", "first\nsecond\n", {"-n", "24"});
  Chat("cut", "first\n/continue\n/set max-tokens 24\nsecond\n");
  EXPECT_EQ(Branch(Show("cut")), Branch(Show("whole")));
}

// Kills a chat at different times while it answers, continues the answer in a new process, and compares the
// conversation with one that was never killed. VLLMCLI_KILLS sets the number of kills.
TEST_F(ChatsProgramTest, KilledChatContinuesAsIfItHadNotBeenKilled) {
  const char* variable = getenv("VLLMCLI_KILLS");
  const int num_rounds = variable == nullptr ? 16 : std::atoi(variable);
  const Flags longer = {"-n", "300"};
  Chat("whole", "first\nsecond\nthird\n", longer);
  const Json whole = Branch(Show("whole"));
  Chat("beginning", "first\n", longer);
  int num_with_answer = 0;
  for (int round = 0; round < num_rounds; ++round) {
    const std::string user = "killed" + std::to_string(round);
    fs::create_directories(fs::path(Database(user)).parent_path());
    fs::copy_file(Database("beginning"), Database(user));
    // --quiet, because the status line that a slow machine shows would be taken for the answer below.
    const Flags flags = {"chat", "-c", "-m", model_, "-n", "300", "--ignore-eos", "--seed", "5", "--quiet"};
    PtyProgram chat(flags, As(user).environment);
    ASSERT_TRUE(chat.WaitFor(">>> first")) << chat.output();
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    const size_t output_before = chat.output().size();
    chat.Send("second\r");
    // In every second round, some of the answer has been shown. In the others, the kill may come at any time.
    if (round % 2 == 0) {
      ASSERT_TRUE(chat.WaitFor("second\r\n")) << chat.output();
      ASSERT_TRUE(chat.WaitFor(" ")) << chat.output();
    }
    usleep(static_cast<useconds_t>(random() % 50'000));
    kill(chat.pid(), SIGKILL);
    chat.WaitForExit();
    const Json stored = Show(user);
    const Json branch = Branch(stored);
    ASSERT_GE(branch.size(), 2u) << user;
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(branch[i], whole[i]) << user;
    // A question is stored before anything of its answer is shown, and the answer's first token before it is shown.
    const std::string shown = chat.output().substr(output_before);
    const size_t echo = shown.find("second\r\n");
    // The rest also has the sequence that ends bracketed paste.
    const bool shows_answer = echo != std::string::npos && shown.find(' ', echo) != std::string::npos;
    const size_t num_messages = branch.size();
    if (shows_answer) {
      ASSERT_EQ(num_messages, 4u) << shown;
    }
    // The stored ids are the beginning of those that the chat without a kill has.
    for (size_t i = 2; i < num_messages; ++i) {
      const std::vector<int32_t> ids = branch[i][2];
      std::vector<int32_t> expected = whole[i][2];
      ASSERT_LE(ids.size(), expected.size());
      expected.resize(ids.size());
      EXPECT_EQ(ids, expected) << user;
    }
    const bool has_answer = num_messages == 4;
    num_with_answer += has_answer ? 1 : 0;
    const bool is_complete = has_answer && stored["messages"][3]["finish_reason"] == "length";
    const std::string command = num_messages == 2 ? "second\n"
                                : !has_answer     ? "/regen seed=5\n"
                                : is_complete     ? ""
                                                  : "/continue\n";
    Chat(user, command + "third\n", {"-c", "-n", "300"});
    EXPECT_EQ(Branch(Show(user)), whole) << user << " " << command;
  }
  EXPECT_GE(num_with_answer, num_rounds / 2);
}

TEST_F(ChatsProgramTest, AnswerInterruptedByControlCContinuesWithItsTokens) {
  Chat("whole", "first\nsecond\n", {"-n", "400"});
  const Json whole = Branch(Show("whole"));
  int num_interrupted = 0;
  for (int round = 0; round < 8 && num_interrupted < 4; ++round) {
    const std::string user = "interrupted" + std::to_string(round);
    PtyProgram chat({"chat", "-m", model_, "--no-markdown", "-n", "400", "--ignore-eos", "--seed", "5"},
                    As(user).environment);
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    chat.Send("first\r");
    ASSERT_TRUE(chat.WaitFor("first\r\n")) << chat.output();
    ASSERT_TRUE(chat.WaitFor(" ")) << chat.output();
    usleep(static_cast<useconds_t>(random() % 30'000));
    chat.Send("\x03");
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    // On a busy machine, the answer may end before Ctrl-C arrives. This round then proves nothing.
    if (chat.output().find("[interrupted;") == std::string::npos) continue;
    ++num_interrupted;
    chat.Send("/continue\r");
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    chat.Send("second\r");
    ASSERT_TRUE(chat.WaitFor("[cut off after 400 tokens")) << chat.output();
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    chat.Send("\x04");
    EXPECT_EQ(chat.WaitForExit(), 0);
    EXPECT_EQ(Branch(Show(user)), whole) << user;
  }
  EXPECT_GE(num_interrupted, 1);
}

TEST_F(ChatsProgramTest, ConversationThatIsOpenInAnotherChatIsRejected) {
  Chat("two", "first\n");
  PtyProgram chat({"chat", "-c", "-m", model_}, As("two").environment);
  ASSERT_TRUE(chat.WaitFor(">>> first")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  const ProgramResult second = RunProgram({"chat", "-c", "-m", model_}, As("two"));
  EXPECT_EQ(second.status, 2);
  EXPECT_NE(second.err.find("conversation 1 is open in another chat"), std::string::npos) << second.err;
  const ProgramResult removal = RunProgram({"chats", "rm", "1"}, As("two"));
  EXPECT_EQ(removal.status, 1);
  EXPECT_NE(removal.err.find("is open in a chat"), std::string::npos) << removal.err;
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
}

TEST_F(ChatsProgramTest, NoSaveStoresNothingAndHasNothingToContinue) {
  Chat("none", "first\n", {"--no-save"});
  EXPECT_FALSE(fs::exists(Database("none")));
  const ProgramResult result = RunProgram({"chat", "-c", "--no-save", "-m", model_}, As("none"));
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("none are stored"), std::string::npos) << result.err;
}

TEST_F(ChatsProgramTest, ChatWorksWithoutItsDatabase) {
  fs::create_directories(temp_.path() + "/broken/vllmcli");
  std::ofstream(Database("broken")) << "not a database, but long enough to have a header of one hundred bytes "
                                    << std::string(100, '.');
  const ProgramResult result = Chat("broken", "first\n");
  EXPECT_NE(result.err.find("warning: this chat is not stored: "), std::string::npos) << result.err;
  EXPECT_FALSE(result.out.empty());
}

TEST_F(ChatsProgramTest, ChatThatBeginsWhileTheDatabaseIsLockedStoresEverythingLater) {
  Chat("locked", "before\n");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(Database("locked").c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  PtyProgram chat({"chat", "-m", model_, "-n", "4", "--ignore-eos"}, As("locked").environment);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("first\r");
  ASSERT_TRUE(chat.WaitFor("locked by another process")) << chat.output();
  ASSERT_TRUE(chat.WaitFor("[cut off after 4 tokens")) << chat.output();
  ASSERT_EQ(sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("second\r");
  ASSERT_TRUE(chat.WaitFor("this conversation is completely stored again")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  // The warning is shown once.
  EXPECT_EQ(chat.output().find("locked by another process"), chat.output().rfind("locked by another process"));
  const Json branch = Branch(Show("locked", 2));
  ASSERT_EQ(branch.size(), 4u);
  EXPECT_EQ(branch[0][1], "first");
  EXPECT_EQ(branch[2][1], "second");
}

TEST_F(ChatsProgramTest, ListSearchShowExportAndRemove) {
  EXPECT_EQ(RunProgram({"chats"}, As("me")).out, "");
  EXPECT_EQ(RunProgram({"chats", "list", "--json"}, As("me")).out, "[]\n");
  Chat("me", "about elephants\n/title Animals\n/new\nabout \x1b[31mcolors\n");
  const ProgramResult list = RunProgram({"chats", "list"}, As("me"));
  EXPECT_NE(list.out.find("Animals\n"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("about <1b>[31mcolors"), std::string::npos) << list.out;
  EXPECT_EQ(Json::parse(RunProgram({"chats", "--json"}, As("me")).out).size(), 2u);

  const ProgramResult hits = RunProgram({"chats", "search", "elephant"}, As("me"));
  EXPECT_EQ(hits.status, 0);
  EXPECT_EQ(hits.out.rfind("1  Animals: about elephants", 0), 0u) << hits.out;
  EXPECT_EQ(RunProgram({"chats", "search", "zebra"}, As("me")).status, 1);

  const ProgramResult shown = RunProgram({"chats", "show", "1"}, As("me"));
  EXPECT_EQ(shown.out.rfind("# Animals\n\n## User\n\nabout elephants\n\n## Assistant\n\n", 0), 0u) << shown.out;
  EXPECT_EQ(RunProgram({"chats", "show", "7"}, As("me")).status, 1);
  EXPECT_EQ(RunProgram({"chats", "show", "x"}, As("me")).status, 2);
  EXPECT_EQ(RunProgram({"chats", "frobnicate"}, As("me")).status, 2);

  const std::string file = temp_.path() + "/chat.html";
  EXPECT_EQ(RunProgram({"chats", "export", "1", file}, As("me")).status, 0);
  EXPECT_TRUE(fs::exists(file));
  EXPECT_EQ(RunProgram({"chats", "export", "1", file}, As("me")).status, 4);  // never overwrites
  EXPECT_EQ(RunProgram({"chats", "export", "1", temp_.path() + "/chat.pdf"}, As("me")).status, 2);

  EXPECT_EQ(RunProgram({"chats", "rm", "1", "7"}, As("me")).status, 1);
  EXPECT_EQ(RunProgram({"chats", "rm", "1", "--secure"}, As("me")).status, 0);
  EXPECT_EQ(Json::parse(RunProgram({"chats", "--json"}, As("me")).out).size(), 1u);
  std::ifstream database(Database("me"), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(database), {}};
  EXPECT_EQ(bytes.find("elephant"), std::string::npos);
}

TEST_F(ChatsProgramTest, LinesWithTwoSlashesAndFileNamesAreMessages) {
  Chat("slashes", "//help\n/etc/fstab is a file\n");
  const Json branch = Branch(Show("slashes"));
  EXPECT_EQ(branch[0][1], "/help");
  EXPECT_EQ(branch[2][1], "/etc/fstab is a file");
}

}  // namespace
}  // namespace vllm::app
