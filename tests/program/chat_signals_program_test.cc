// Sends signals to a chat at random times, kills it, and kills its terminal. The terminal's modes must be restored by
// every chat that can, and the database must hold all that was shown.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/program/chats_test.h"
#include "tests/support/scripted_model.h"

namespace vllm::app {
namespace {

enum class Event { kInterrupt, kTerminate, kHangup, kSuspend, kCloseTerminal, kKill };

class ChatSignalsTest : public ChatsProgramTest {
 protected:
  void TearDown() override { sqlite3_close(database_); }

  // Opens the database once: its connection then also sees what killed chats have left in the log.
  void Open() {
    if (database_ == nullptr) {
      ASSERT_EQ(sqlite3_open_v2(Database("me").c_str(), &database_, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK);
    }
  }
  std::string Query(const std::string& sql, const std::string& parameter = "") {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
    sqlite3_bind_text(statement, 1, parameter.c_str(), -1, SQLITE_TRANSIENT);
    std::string result;
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* text = sqlite3_column_text(statement, 0);
      if (text != nullptr) result = reinterpret_cast<const char*>(text);
    }
    sqlite3_finalize(statement);
    return result;
  }

  // Asks one question, and causes the event after a random time.
  void Run(Event event, const std::string& question) {
    PtyProgram chat({"chat", "-m", model_, "--no-markdown", "-n", "200", "--ignore-eos", "--seed", "5"},
                    As("me").environment);
    ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
    chat.Send(question + "\r");
    usleep(static_cast<useconds_t>(random() % 60'000));
    int expected = 0;
    switch (event) {
      case Event::kInterrupt:
        kill(chat.pid(), SIGINT);
        chat.Send("\x04");
        break;
      case Event::kTerminate:
        kill(chat.pid(), SIGTERM);
        expected = 128 + SIGTERM;
        break;
      case Event::kHangup:
        kill(chat.pid(), SIGHUP);
        expected = 128 + SIGHUP;
        break;
      case Event::kSuspend:
        kill(chat.pid(), SIGTSTP);
        ASSERT_TRUE(chat.WaitForStop()) << chat.output();
        EXPECT_TRUE(chat.TerminalIsRestored());
        // The emulator may not have received the last bytes yet.
        EXPECT_TRUE(chat.WaitForScreen([](const TerminalEmulator& t) { return !t.state().bracketed_paste; }));
        kill(-chat.pid(), SIGCONT);
        // While the terminal has its usual modes, it would take Ctrl-D for itself.
        for (int i = 0; chat.TerminalIsRestored() && i < 100'000; ++i) {
          chat.WaitFor(std::string(1, '\0'), std::chrono::milliseconds(1));  // reads the output
        }
        chat.Send("\x04");
        break;
      case Event::kCloseTerminal:
        chat.CloseTerminal();
        break;
      case Event::kKill:
        kill(chat.pid(), SIGKILL);
        expected = 128 + SIGKILL;
        break;
    }
    const int status = chat.WaitForExit();
    if (event == Event::kCloseTerminal) {
      // At the prompt like SIGHUP; while it writes, like any program whose output was closed.
      EXPECT_TRUE(status == 128 + SIGHUP || status == 0 || status == 1 || status == 4) << status;
    } else {
      EXPECT_EQ(status, expected) << chat.output();
    }
    if (event != Event::kCloseTerminal && event != Event::kKill) {
      EXPECT_TRUE(chat.TerminalIsRestored()) << chat.output();
      EXPECT_FALSE(chat.terminal().state().bracketed_paste);
      EXPECT_TRUE(chat.terminal().state().cursor_visible);
    }

    Open();
    ASSERT_EQ(Query("PRAGMA quick_check"), "ok");
    const size_t echo = chat.output().rfind(question + "\r\n");
    if (echo == std::string::npos) return;
    std::string shown = chat.output().substr(echo + question.size() + 2);
    constexpr std::string_view kPasteOff = "\x1b[?2004l\r";
    if (shown.starts_with(kPasteOff)) shown.erase(0, kPasteOff.size());
    shown = shown.substr(0, shown.find_first_of("\r\n\x1b^>["));  // the answer's first line, without notes and prompts
    if (shown.empty()) return;
    ++num_answered_;
    const std::string stored = Query(
        "SELECT text FROM messages WHERE role = 2 AND parent = (SELECT id FROM messages WHERE text = ?1)", question);
    ASSERT_FALSE(stored.empty()) << chat.output();
    const size_t num_compared = std::min(shown.size(), stored.size());
    EXPECT_EQ(shown.substr(0, num_compared), stored.substr(0, num_compared));
    // A chat that can end normally stores all it has shown.
    if (event != Event::kKill) {
      EXPECT_LE(shown.size(), stored.size());
    }
  }

  int num_answered_ = 0;

 private:
  sqlite3* database_ = nullptr;
};

// VLLMCLI_SIGNALS sets the number of events.
TEST_F(ChatSignalsTest, RandomSignalsLeaveTheTerminalAndTheDatabaseInOrder) {
  const char* variable = getenv("VLLMCLI_SIGNALS");
  const int num_events = variable == nullptr ? 24 : std::atoi(variable);
  for (int i = 0; i < num_events && !HasFailure(); ++i) {
    Run(static_cast<Event>(i % 6), "question number " + std::to_string(i));
  }
  EXPECT_GT(num_answered_, num_events / 10);
}

// Returns the number of the system call in which the main thread of the process sleeps, or "running" if the thread
// runs. Returns "" if the process has ended or the kernel does not say.
std::string SystemCallOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/syscall");
  std::string number;
  file >> number;
  return number;
}

TEST_F(ChatSignalsTest, InterruptDuringAWriteStopsTheAnswerAndNotTheChat) {
  std::string answer;
  for (int i = 0; i < 20'000; ++i) answer += "line " + std::to_string(i) + "\n";
  const std::string model = testing_support::WriteScriptedModel(temp_.path() + "/model", answer, 80);
  PtyProgram chat({"chat", "-m", model, "--no-markdown"}, As("me").environment);
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("go\r");
  ASSERT_TRUE(chat.WaitFor("line 0")) << chat.output();
  // The test reads nothing now, so the buffer of the terminal is soon full and write(2) blocks. A thread that is seen
  // in write(2) this often is blocked there.
  const auto wait_for_write = [&] {
    for (int num_seen = 0; num_seen < 200;) {
      const std::string call = SystemCallOf(chat.pid());
      ASSERT_NE(call, "") << "cannot read /proc/" << chat.pid() << "/syscall";
      if (call == std::to_string(SYS_write)) {
        ++num_seen;
      } else {
        std::this_thread::yield();
      }
    }
  };
  // If a write has written some bytes, the first signal ends it, and it returns their number. The next write finds the
  // buffer full, so it has written nothing when SIGINT ends it.
  ASSERT_NO_FATAL_FAILURE(wait_for_write());
  kill(chat.pid(), SIGWINCH);
  ASSERT_NO_FATAL_FAILURE(wait_for_write());
  kill(chat.pid(), SIGINT);
  ASSERT_TRUE(chat.WaitFor("[interrupted;")) << chat.output();
  ASSERT_TRUE(chat.WaitFor(">>> ")) << chat.output();
  chat.Send("\x04");
  EXPECT_EQ(chat.WaitForExit(), 0);
  EXPECT_TRUE(chat.TerminalIsRestored());
}

}  // namespace
}  // namespace vllm::app
