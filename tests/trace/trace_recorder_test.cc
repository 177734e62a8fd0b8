// Tests the file of a trace: how it is created, and what remains of it after failures.
#include "engine/trace/trace_recorder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "engine/config/errors.h"
#include "tests/trace/trace_test_util.h"

namespace vllm {
namespace {

std::string WhyNot(const std::string& path) {
  return MessageOf<ConfigError>([&] { const TraceRecorder recorder(path); });
}

TEST(TraceRecorderTest, FileIsPrivate) {
  const TempDirectory directory;
  const TraceRecorder recorder(directory.path() + "/new");
  struct stat status {};
  ASSERT_EQ(stat(recorder.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  // An empty file is used, but made private.
  const std::string empty = directory.Write("empty", "");
  ASSERT_EQ(chmod(empty.c_str(), 0644), 0);
  const TraceRecorder second(empty);
  ASSERT_EQ(stat(empty.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
}

TEST(TraceRecorderTest, ExistingFilesAndLinksAreRejectedUnchanged) {
  const TempDirectory directory;
  const std::string full = directory.Write("full", "precious");
  EXPECT_EQ(WhyNot(full), "--trace " + full + ": exists and is not empty; choose another file");
  EXPECT_EQ(ReadBytes(full), "precious");
  const std::string link = directory.path() + "/link";
  std::filesystem::create_symlink(directory.path() + "/missing", link);
  EXPECT_EQ(WhyNot(link), "--trace " + link + ": is a symbolic link");
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/missing"));
  EXPECT_NE(WhyNot(directory.path()), "");
  EXPECT_THROW(TraceRecorder(directory.path() + "/missing/file"), ResourceError);
}

TEST(TraceRecorderTest, FileOfAnotherRecorderIsRejected) {
  const TempDirectory directory;
  const TraceRecorder recorder(directory.path() + "/trace");
  EXPECT_EQ(WhyNot(recorder.path()), "--trace " + recorder.path() + ": another process is writing to it");
}

TEST(TraceRecorderTest, FullDiskEndsTheTraceButNotTheEngine) {
  EngineCore untraced(BusyConfig(), testing::FakeExecutorFactory());
  AddBusyRequests(untraced);
  const Tokens expected = RunTraced(untraced);

  const TempDirectory directory;
  TraceRecorder recorder(directory.path() + "/trace");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = signal(SIGXFSZ, SIG_IGN);
  {
    EngineCore engine_core(BusyConfig(), testing::FakeExecutorFactory(), nullptr, &recorder);
    AddBusyRequests(engine_core);
    const rlimit limit{1000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(RunTraced(engine_core), expected);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, old_handler);
  std::string reason;
  EXPECT_TRUE(recorder.Failed(&reason));
  EXPECT_EQ(reason, "File too large");
  const std::string bytes = ReadBytes(recorder.path());
  EXPECT_GT(bytes.size(), 500u);
  TraceReader reader(TraceBytes(bytes));
  const ReplayResult result = ReplayTrace(reader);
  EXPECT_EQ(result.difference, "");
  EXPECT_EQ(reader.num_torn_bytes(), 0u);
  EXPECT_FALSE(result.has_end);
}

TEST(TraceRecorderTest, KilledProcessLeavesTheStepInWhichItDied) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/trace";
  const pid_t child = fork();
  if (child == 0) {
    testing::FakeModel model;
    model.on_step = [](int64_t step, const SchedulerOutput&) {
      if (step == 5) kill(getpid(), SIGKILL);
    };
    TraceRecorder recorder(path);
    EngineCore engine_core(BusyConfig(), testing::FakeExecutorFactory(model), nullptr, &recorder);
    AddBusyRequests(engine_core);
    RunTraced(engine_core);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const std::string bytes = ReadBytes(path);
  EXPECT_EQ(RecordsOf(bytes).back().type, TraceRecordType::kStep);
  const ReplayResult result = ReplayOf(bytes);
  EXPECT_EQ(result.difference, "");
  EXPECT_EQ(result.num_steps, 6);
}

TEST(TraceRecorderTest, EngineThatDiesLeavesTheStepInWhichItDiedAndNoEnd) {
  const TempDirectory directory;
  TraceRecorder recorder(directory.path() + "/trace");
  {
    testing::FakeModel model;
    model.throw_at_step = 3;
    EngineCore engine_core(BusyConfig(), testing::FakeExecutorFactory(model), nullptr, &recorder);
    AddBusyRequests(engine_core);
    EXPECT_THROW(RunTraced(engine_core), std::runtime_error);
  }
  EXPECT_EQ(RecordsOf(ReadBytes(recorder.path())).back().type, TraceRecordType::kStep);
  const ReplayResult result = ReplayOf(ReadBytes(recorder.path()));
  EXPECT_EQ(result.difference, "");
  EXPECT_FALSE(result.has_end);
}

// Returns the trace without times and tags.
std::string Decisions(const std::string& bytes) {
  std::vector<TraceRecord> records = RecordsOf(bytes);
  for (TraceRecord& record : records) {
    record.add.arrival_ns = record.step.elapsed_us = record.update.elapsed_us = 0;
    std::fill(record.add.tags.begin(), record.add.tags.end(), 0);
    std::fill(record.update.tags.begin(), record.update.tags.end(), 0);
  }
  return BytesOf(records);
}

std::vector<uint64_t> TagsOf(const std::string& bytes) {
  std::vector<uint64_t> tags;
  for (const TraceRecord& record : RecordsOf(bytes)) {
    if (record.type == TraceRecordType::kAdd) tags.insert(tags.end(), record.add.tags.begin(), record.add.tags.end());
  }
  return tags;
}

TEST(TraceRecorderTest, TagsSayOnlyWhichBlocksAreEqual) {
  const std::string first = BusyTrace();
  const std::string second = BusyTrace();
  EXPECT_EQ(Decisions(first), Decisions(second));
  const std::vector<uint64_t> tags = TagsOf(first);
  const std::vector<uint64_t> other_tags = TagsOf(second);
  ASSERT_EQ(tags.size(), 6u * 3);
  ASSERT_EQ(other_tags.size(), tags.size());
  for (size_t i = 0; i < tags.size(); ++i) {
    // The first two blocks of all prompts are equal; the second has the same tokens as the first.
    for (size_t j = 0; j < tags.size(); ++j) EXPECT_EQ(tags[i] == tags[j], i == j || (i % 3 < 2 && i % 3 == j % 3));
    for (const uint64_t other : other_tags) EXPECT_NE(tags[i], other);
  }
}

TEST(TraceRecorderTest, BeamSearchEndsTheTrace) {
  const TempDirectory directory;
  TraceRecorder recorder(directory.path() + "/trace");
  {
    EngineCore engine_core(testing::FakeConfig(), testing::FakeExecutorFactory(), nullptr, &recorder);
    engine_core.AddRequest(testing::FakeRequest(1, {1, 2, 3}, 4));
    RunTraced(engine_core);
    SamplingParams params;
    params.use_beam_search = true;
    params.beam_width = 2;
    params.temperature = 0.0;
    params.logprobs = 4;
    engine_core.AddRequest(testing::FakeRequest(2, {1, 2, 3}, 4, params));
    RunTraced(engine_core);
  }
  std::string reason;
  EXPECT_TRUE(recorder.Failed(&reason));
  EXPECT_EQ(reason, "a trace cannot contain beam search");
  // What was recorded before can be replayed.
  const ReplayResult result = ReplayOf(ReadBytes(recorder.path()));
  EXPECT_EQ(result.difference, "");
  EXPECT_EQ(result.num_requests, 1);
  EXPECT_FALSE(result.has_end);
}

}  // namespace
}  // namespace vllm
