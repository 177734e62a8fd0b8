// Loads and runs tools: programs, tables and directories.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "app/tools/run_child.h"
#include "app/tools/tool_box.h"
#include "app/tools/tool_loader.h"
#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using namespace std::chrono_literals;

// As in the program.
[[maybe_unused]] const auto g_ignore_sigpipe = signal(SIGPIPE, SIG_IGN);

const std::string kTools = std::string(VLLMCLI_TEST_DATA) + "/tools";

ChildResult Shell(const std::string& script, std::string_view input = "", const ChildLimits& limits = {},
                  std::span<const PollHook> hooks = {}) {
  return RunChild({{"/bin/sh", "-c", script}, {}}, input, limits, hooks);
}

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string ErrorOfTables(const std::string& text) {
  return ErrorOf([&] { ParseToolTables(text, "/d", "t.toml"); });
}

TEST(RunChildTest, InputGoesInAndOutputComesOut) {
  const ChildResult result = Shell("cat; echo words >&2", "some input");
  EXPECT_TRUE(result.succeeded);
  EXPECT_EQ(result.output, "some input");
  EXPECT_EQ(result.error_output, "words\n");
}

TEST(RunChildTest, MoreInputAndOutputThanAPipeHoldsIsNoDeadlock) {
  const std::string input(1 << 20, 'x');
  ChildLimits limits;
  limits.max_output_bytes = input.size();
  EXPECT_EQ(Shell("cat; cat /dev/null", input, limits).output, input);
}

TEST(RunChildTest, AProgramMayIgnoreItsInput) { EXPECT_TRUE(Shell("exec true", std::string(1 << 20, 'x')).succeeded); }

TEST(RunChildTest, OutputAboveTheLimitIsCounted) {
  ChildLimits limits;
  limits.max_output_bytes = 4;
  const ChildResult result = Shell("printf 1234567890", "", limits);
  EXPECT_EQ(result.output, "1234");
  EXPECT_EQ(result.num_omitted_bytes, 6);
}

TEST(RunChildTest, EndlessOutputIsStopped) {
  const ChildResult result = Shell("yes");
  EXPECT_EQ(result.end, ChildResult::End::kTooMuchOutput);
}

TEST(RunChildTest, AFailureHasItsStatus) {
  const ChildResult result = Shell("exit 3");
  EXPECT_FALSE(result.succeeded);
  EXPECT_EQ(result.end_text, "ended with status 3");
}

TEST(RunChildTest, ATimeoutEndsTheWholeGroup) {
  ChildLimits limits;
  limits.timeout = 100ms;
  // The second process holds the pipes open; RunChild must not wait for it.
  const ChildResult result = Shell("trap '' TERM; sleep 1000 & echo started; wait", "", limits);
  EXPECT_EQ(result.end, ChildResult::End::kTimedOut);
  EXPECT_EQ(result.output, "started\n");
}

TEST(RunChildTest, AProcessInTheBackgroundIsNotWaitedFor) {
  EXPECT_EQ(Shell("sleep 1000 & echo done").output, "done\n");
}

TEST(RunChildTest, AHookEndsTheProgram) {
  std::array<int, 2> fds{};
  ASSERT_EQ(pipe(fds.data()), 0);
  ASSERT_EQ(write(fds[1], "x", 1), 1);
  const PollHook hook = {fds[0], [] { return false; }};
  EXPECT_EQ(Shell("sleep 1000", "", {}, {&hook, 1}).end, ChildResult::End::kInterrupted);
  close(fds[0]);
  close(fds[1]);
}

TEST(RunChildTest, AHookThatIsReadyWhenTheProgramEndsIsNotMissed) {
  std::array<int, 2> fds{};
  ASSERT_EQ(pipe(fds.data()), 0);
  ASSERT_EQ(fcntl(fds[1], F_SETFD, FD_CLOEXEC), 0);
  const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fds[1]);
  const PollHook hook = {fds[0], [] { return false; }};
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Shell("echo x > " + path, "", {}, {&hook, 1}).end, ChildResult::End::kInterrupted);
    char byte = 0;
    while (poll(std::array<pollfd, 1>{{{fds[0], POLLIN, 0}}}.data(), 1, 0) > 0 && read(fds[0], &byte, 1) == 1) {
    }
  }
  close(fds[0]);
  close(fds[1]);
}

TEST(RunChildTest, TheEnvironmentIsClean) {
  setenv("VLLMCLI_TEST_SECRET", "secret", 1);
  const ChildResult result = Shell("env");
  EXPECT_EQ(result.output.find("secret"), std::string::npos);
  EXPECT_NE(result.output.find("TERM=dumb\n"), std::string::npos);
}

TEST(RunChildTest, TheProgramHasNoTerminal) { EXPECT_FALSE(Shell("exec < /dev/tty").succeeded); }

TEST(RunChildTest, AProgramThatDoesNotExistIsAnError) {
  EXPECT_THROW(RunChild({{"/no/such/program"}, {}}, "", {}, {}), ToolError);
}

TEST(LoadToolsTest, ADirectoryHasExecutablesAndTables) {
  const std::vector<LocalTool> tools = LoadTools(kTools, {});
  ASSERT_EQ(tools.size(), 3u);
  EXPECT_EQ(tools[0].definition.name, "add");
  EXPECT_EQ(tools[0].definition.description, "Add two integers");
  EXPECT_EQ(tools[1].definition.name, "echo");
  EXPECT_EQ(tools[1].timeout, 5s);
  EXPECT_EQ(
      tools[1].definition.parameters,
      R"({"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer"}},"required":["text"]})");
  EXPECT_EQ(tools[2].definition.parameters, R"({"type":"object","properties":{}})");
}

TEST(LoadToolsTest, RelativeCommandsStartAtTheDirectoryOfTheFile) {
  const auto tools =
      ParseToolTables("[[tool]]\nname='a'\ncommand=['./x', 'y']\n[[tool]]\nname='b'\ncommand=['cat']", "/d", "t.toml");
  EXPECT_EQ(tools.at(0).command.argv, (std::vector<std::string>{"/d/./x", "y"}));
  EXPECT_EQ(tools.at(1).command.argv, (std::vector<std::string>{"cat"}));
}

TEST(LoadToolsTest, MistakesInTablesAreNamed) {
  EXPECT_EQ(ErrorOfTables(""), "t.toml: has no [[tool]] table");
  EXPECT_EQ(ErrorOfTables("[[tool]]\nname='a'"),
            "t.toml: tool 1: tool a: command must be an array of strings, the program and its arguments");
  EXPECT_EQ(ErrorOfTables("[[tool]]\nname='a'\nrun=1"),
            "t.toml: tool 1: unknown key run; a tool has name, description, parameters, command and timeout");
  EXPECT_EQ(ErrorOfTables("[[tool]]\nname='a'\ncommand=['c']\ntimeout=-1"),
            "t.toml: tool 1: tool a: timeout must be a number of seconds above 0, at most 86400");
  EXPECT_EQ(ErrorOfTables("a = " + std::string(100000, '[')), "t.toml: nested too deeply (limit 32)");
  EXPECT_EQ(ErrorOfTables("\xFF"), "t.toml: not valid UTF-8");
  EXPECT_NE(ErrorOfTables("a = "), "");
}

TEST(LoadToolsTest, AProgramWithoutASchemaIsAnError) {
  const TempDirectory temp;
  const std::string path = temp.path() + "/tool";
  std::ofstream(path) << "#!/bin/sh\necho no schema here >&2\nexit 1\n";
  chmod(path.c_str(), 0755);
  EXPECT_EQ(ErrorOf([&] { LoadTools(path, {}); }),
            "--tools " + path + ": --schema ended with status 1; it wrote: no schema here\\x0a");
}

TEST(LoadToolsTest, AnEmptyDirectoryIsAnError) {
  const TempDirectory temp;
  EXPECT_EQ(ErrorOf([&] { LoadTools(temp.path(), {}); }),
            "--tools " + temp.path() + ": the directory has neither an executable nor a .toml file");
}

class FakeSource : public ToolSource {
 public:
  FakeSource(std::string prefix, const std::vector<std::string>& names) : prefix_(std::move(prefix)) {
    for (const std::string& name : names) definitions_.push_back({name, "", "{}", false});
  }
  const std::vector<ToolDefinition>& definitions() const override { return definitions_; }
  ToolResult Run(size_t index, const std::string& arguments, std::span<const PollHook> /*hooks*/) override {
    ToolResult result;
    result.text = prefix_ + ":" + definitions_[index].name + arguments;
    return result;
  }
  std::string OriginOf(size_t index) const override { return prefix_ + " " + definitions_[index].name; }
  std::string prefix() const override { return prefix_; }

 private:
  std::string prefix_;
  std::vector<ToolDefinition> definitions_;
};

TEST(ToolBoxTest, EqualNamesOfServersGetPrefixes) {
  ToolBox box;
  box.SetLocal(std::make_unique<FakeSource>("", std::vector<std::string>{"read"}));
  box.Add(std::make_unique<FakeSource>("one", std::vector<std::string>{"read", "list.all"}));
  box.Add(std::make_unique<FakeSource>("two", std::vector<std::string>{"read"}));
  std::vector<std::string> names;
  for (const ToolDefinition& tool : box.tools()->tools()) names.push_back(tool.name);
  EXPECT_EQ(names, (std::vector<std::string>{"read", "one__read", "list_all", "two__read"}));
  EXPECT_EQ(box.Run("two__read", "{ \"a\":\n1}", {}).text, "two:read{\"a\":1}");
  EXPECT_EQ(box.Run("list_all", "", {}).text, "one:list.all{}");
  EXPECT_EQ(box.OriginOf("two__read"), "two read");
  EXPECT_EQ(box.OriginOf("none"), "");
}

TEST(ToolBoxTest, InvalidCallsAreResults) {
  ToolBox box;
  box.SetLocal(std::make_unique<LocalTools>(LoadTools(kTools, {})));
  EXPECT_EQ(box.Run("add", R"({"a":2,"b":-5})", {}).text, "-3\n");
  EXPECT_EQ(box.Run("none", "{}", {}).text, "error: there is no tool called none");
  EXPECT_EQ(box.Run("add", "[1]", {}).text, "error: the arguments are no JSON object: must be an object");
  EXPECT_TRUE(box.Run("add", "{", {}).failed);
}

TEST(ToolResultTest, LongTextsAreCutBetweenCharacters) {
  const std::string result = ResultText(std::string(kMaxResultBytes - 1, 'x') + "\xC3\xA9");
  EXPECT_EQ(result, std::string(kMaxResultBytes - 1, 'x') + "\n[2 more bytes were omitted]");
}

TEST(CallTextTest, ControlCharactersAreShown) {
  EXPECT_EQ(CallText("f", "{\"a\": \"\\u001b[2J\xE2\x80\xAE\"}"), "f({\"a\":\"\\u001b[2J<202e>\"})");
  EXPECT_EQ(CallText("f", "not\njson\x1b"), "f(not\\njson<1b>)");
}

}  // namespace
}  // namespace vllm::app
