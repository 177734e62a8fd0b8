// Compares the live view of synthetic frames, as text, at several sizes.
#include "app/live/view/live_view.h"

#include <gtest/gtest.h>

#include <string>

#include "app/live/view/live_viewer.h"
#include "app/terminal/safe_text.h"

namespace vllm::app {
namespace {

using std::chrono::milliseconds;

RequestSnapshot MakeRow(RequestId id, RequestStatus status, int64_t num_prompt, int64_t num_computed,
                        int64_t num_output) {
  RequestSnapshot row;
  row.request_id = id;
  row.external_req_id = "row-" + std::to_string(id);
  row.status = status;
  row.num_prompt_tokens = num_prompt;
  row.num_cached_tokens = num_prompt / 4;
  row.num_computed_tokens = num_computed;
  row.num_output_tokens = num_output;
  row.max_tokens = 100;
  row.age = Seconds(1.5 * static_cast<double>(id));
  if (num_output > 0) {
    row.time_to_first_token = Seconds(0.25);
    row.decode_time = Seconds(2);
  }
  return row;
}

// A batch with three running and two waiting requests.
LiveFrame MakeFrame() {
  LiveFrame frame;
  frame.process.pid = 4711;
  frame.process.command = "batch";
  frame.process.model = "models/SmolLM2-135M";
  frame.process.dtype = "bfloat16";
  frame.process.threads_per_rank = 2;
  frame.process.max_model_len = 8192;
  frame.process.rss_bytes = 512 << 20;
  frame.process.uptime = Seconds(3723);
  EngineSnapshot& engine = frame.engine;
  engine.time = SteadyTime(milliseconds(10000));
  engine.scheduler = {.step = 120,
                      .num_running_reqs = 3,
                      .num_waiting_reqs = 2,
                      .kv_cache_usage = 0.3125,
                      .prefix_cache = {.requests = 5, .queries = 400, .hits = 100},
                      .num_preemptions = 1,
                      .num_scheduled_tokens = 66,
                      .num_computed_tokens = 3000,
                      .num_prompt_tokens = 2400,
                      .num_generation_tokens = 600,
                      .spec_decoding = {}};
  engine.max_num_batched_tokens = 2048;
  engine.max_num_seqs = 128;
  engine.num_executed_steps = 120;
  engine.step_time = Seconds(6);
  engine.last_step_time = Seconds(0.05);
  engine.rank_times = {Seconds(5.5)};
  engine.requests = {MakeRow(1, RequestStatus::kRunning, 100, 140, 41), MakeRow(2, RequestStatus::kRunning, 60, 80, 21),
                     MakeRow(3, RequestStatus::kRunning, 400, 64, 0), MakeRow(4, RequestStatus::kPreempted, 30, 0, 7),
                     MakeRow(5, RequestStatus::kWaiting, 50, 0, 0)};
  frame.prompts = {"why is the sky blue?", "Zähle bis drei: 一二三", "fake \x1b[31m\x9b title", "write a poem", "hi"};
  engine.num_kv_blocks = 64;
  engine.block_size = 16;
  engine.kv_blocks.assign(64, EngineSnapshot::kFree);
  for (size_t i = 0; i < 9; ++i) engine.kv_blocks[i] = EngineSnapshot::kFirstRequest;
  for (size_t i = 9; i < 14; ++i) engine.kv_blocks[i] = EngineSnapshot::kFirstRequest + 1;
  for (size_t i = 14; i < 18; ++i) engine.kv_blocks[i] = EngineSnapshot::kFirstRequest + 2;
  for (size_t i = 18; i < 20; ++i) engine.kv_blocks[i] = EngineSnapshot::kShared;
  for (size_t i = 20; i < 26; ++i) engine.kv_blocks[i] = EngineSnapshot::kCachedFree;
  LiveBatch& batch = frame.batch.emplace();
  batch.input = "in.jsonl";
  batch.num_done = 40;
  batch.num_failed = 1;
  batch.num_rows = 1000;
  batch.elapsed = Seconds(40);
  batch.time_left = Seconds(754);
  batch.errors = {{12, "no such field: promt"}};
  return frame;
}

// Four snapshots, 0.5 s apart, that end with that of the frame.
LiveHistory MakeHistory(const LiveFrame& frame) {
  LiveHistory history;
  for (int i = 3; i >= 0; --i) {
    EngineSnapshot snapshot = frame.engine;
    snapshot.time -= milliseconds(500 * i);
    snapshot.scheduler.num_prompt_tokens -= 100 * i;
    snapshot.scheduler.num_generation_tokens -= 20 * i * i;
    snapshot.scheduler.num_computed_tokens -= 120 * i;
    snapshot.num_executed_steps -= 2 * i;
    snapshot.step_time -= Seconds(0.1 * i);
    snapshot.rank_times[0] -= Seconds(0.09 * i);
    history.Add(snapshot);
  }
  return history;
}

std::string Draw(const LiveViewSize& size, const LiveViewState& state = {}) {
  const LiveFrame frame = MakeFrame();
  return DrawLiveView(&frame, MakeHistory(frame), state, size).Text();
}

TEST(LiveViewTest, EightyColumns) {
  EXPECT_EQ("\n" + Draw({24, 80, true}, {.selected = 2}), R"(
batch 4711  SmolLM2-135M                                              up 1:02:03
2 threads, memory 536.9 MB, context 8,192 tokens, bfloat16
running 3, waiting 2, KV 31 % of 64 blocks, prefix hits 25 %, preempted 1
prompt      200.0 tok/s                                                      ███
output       40.0 tok/s                                                      █▅▂
step       50.0ms, 60.0 of 2,048 tokens (2.9 %)                              ▁▁▁
tokens   prefill 83 %, decode 17 %, steps 120, per rank 45.0ms
batch    40 of 1,000 rows, 1 failed, ~0:12:34 left 4.0 % [█····················]
line 12: no such field: promt
KV blocks, one per cell: A-z request, █ shared, ░ cached, · free
BBBBBBBBBCCCCCDDDD██░░░░░░······································
  REQUEST  STATE          PROMPT   HIT   OUT/MAX  TOK/S    AGE  FIRST END OF PR
B row-1    writing           100  25 %    41/100   20.0   1.5s  250ms sky blue?
C>row-2    writing            60  25 %    21/100   10.0   3.0s  250ms i: 一二三
D row-3    reading        64/400  25 %     0/100      -   4.5s      - 1m� title
  row-4    preempted          30  23 %     7/100    3.0   6.0s  250ms te a poem
  row-5    waiting            50  24 %     0/100      -   7.5s      - hi






q quit  h help  p pause  k abort  s sort  Enter text
)");
}

TEST(LiveViewTest, EightyColumnsInAscii) {
  const std::string text = Draw({24, 80, false}, {.selected = 2});
  EXPECT_NE(text.find("A-z request, # shared, - cached, . free"), std::string::npos) << text;
  EXPECT_NE(text.find("BBBBBBBBBCCCCCDDDD##------......"), std::string::npos) << text;
}

TEST(LiveViewTest, TwentyColumns) {
  EXPECT_EQ("\n" + Draw({5, 20, true}), R"(
batch 4711  SmolLM2-
running 3, waiting 2
output       40.0 to
B row-1       41/100
q quit  h help
)");
}

TEST(LiveViewTest, TwoHundredColumns) {
  EXPECT_EQ("\n" + Draw({60, 200, true}, {.sort = LiveSort::kOutput}), R"(
batch 4711  SmolLM2-135M                                                                                                                                                                      up 1:02:03
2 threads, memory 536.9 MB, context 8,192 tokens, bfloat16
running 3, waiting 2, KV 31 % of 64 blocks, prefix hits 25 %, preempted 1
prompt      200.0 tok/s                                                                                                                      ███
output       40.0 tok/s                                                                                                                      █▅▂
step       50.0ms, 60.0 of 2,048 tokens (2.9 %)                                                                                                                      ▁▁▁
tokens   prefill 83 %, decode 17 %, steps 120, per rank 45.0ms
batch    40 of 1,000 rows, 1 failed, ~0:12:34 left 4.0 % [██····································]
line 12: no such field: promt
KV blocks, one per cell: A-z request, █ shared, ░ cached, · free
BBBBBBBBBCCCCCDDDD██░░░░░░······································
  REQUEST          STATE          PROMPT   HIT  OUT/MAX<  TOK/S    AGE  FIRST END OF PROMPT
B row-1            writing           100  25 %    41/100   20.0   1.5s  250ms why is the sky blue?
C row-2            writing            60  25 %    21/100   10.0   3.0s  250ms Zähle bis drei: 一二三
  row-4            preempted          30  23 %     7/100    3.0   6.0s  250ms write a poem
D row-3            reading        64/400  25 %     0/100      -   4.5s      - fake <1b>[31m� title
  row-5            waiting            50  24 %     0/100      -   7.5s      - hi










































q quit  h help  p pause  k abort  s sort  Enter text
)");
}

TEST(LiveViewTest, EverySizeFromNothingUpDraws) {
  const LiveFrame frame = MakeFrame();
  const LiveHistory history = MakeHistory(frame);
  for (const LivePanel panel : {LivePanel::kMain, LivePanel::kHelp, LivePanel::kDetail, LivePanel::kProcesses}) {
    for (int rows = 0; rows < 30; ++rows) {
      for (const int columns : {0, 1, 2, 3, 7, 13, 20, 33, 59, 60, 61, 80, 300}) {
        for (const LiveFrame* shown : {&frame, static_cast<const LiveFrame*>(nullptr)}) {
          const CellGrid grid = DrawLiveView(
              shown, history, {.panel = panel, .selected = 1, .processes = {"1", "2"}, .can_switch_process = true},
              {rows, columns, true});
          EXPECT_EQ(grid.rows(), rows);
          EXPECT_EQ(grid.columns(), columns);
        }
      }
    }
  }
}

TEST(LiveViewTest, HostileTextHasNoControlCharacters) {
  LiveFrame frame = MakeFrame();
  std::string hostile;
  for (int c = 1; c < 256; ++c) hostile += static_cast<char>(c);
  hostile += "\u202e\u200b\U000e0041\u2028";
  frame.process.model = hostile;
  frame.process.command = hostile;
  frame.batch->errors = {{1, hostile}};
  for (RequestSnapshot& request : frame.engine.requests) request.external_req_id = hostile;
  frame.prompts.assign(frame.prompts.size(), hostile);
  frame.detail = LiveDetail{1, hostile, hostile};
  for (const LivePanel panel : {LivePanel::kMain, LivePanel::kDetail}) {
    const CellGrid grid =
        DrawLiveView(&frame, MakeHistory(frame), {.panel = panel, .selected = 1, .question = hostile}, {40, 400, true});
    for (int row = 0; row < grid.rows(); ++row) {
      for (int column = 0; column < grid.columns(); ++column) {
        const std::string& text = grid.At(row, column).text;
        EXPECT_EQ(SafeText(text).view(), text);
        EXPECT_EQ(text.find('\n'), std::string::npos);
      }
    }
  }
}

TEST(LiveViewTest, EndOfALongPromptIsShown) {
  LiveFrame frame = MakeFrame();
  // The longest that another process may send. Measuring all of it again for each character would take minutes.
  frame.prompts.assign(frame.prompts.size(), std::string(64 * 1024 - 4, 'x') + "\tend");
  const std::string text = DrawLiveView(&frame, MakeHistory(frame), {}, {24, 80, true}).Text();
  EXPECT_NE(text.find("250ms xxxxx end"), std::string::npos) << text;
}

TEST(LiveViewTest, SelectedRequestIsOnTheShownPage) {
  LiveFrame frame = MakeFrame();
  for (RequestId id = 6; id <= 100; ++id) {
    frame.engine.requests.push_back(MakeRow(id, RequestStatus::kWaiting, 10, 0, 0));
    frame.prompts.emplace_back();
  }
  for (const RequestId id : {1, 40, 77, 100}) {
    const std::string text = DrawLiveView(&frame, MakeHistory(frame), {.selected = id}, {24, 80, true}).Text();
    EXPECT_NE(text.find(">row-" + std::to_string(id) + " "), std::string::npos) << text;
  }
}

TEST(LiveViewTest, PausedAdmissionIsNamed) {
  LiveFrame frame = MakeFrame();
  frame.engine.scheduler.admission_paused = true;
  const std::string text = DrawLiveView(&frame, {}, {}, {24, 80, true}).Text();
  EXPECT_NE(text.find("PAUSED"), std::string::npos);
  EXPECT_NE(text.find("p resume"), std::string::npos);
}

TEST(LiveViewTest, AcceptedDraftsAreShownIfThereWereDrafts) {
  LiveFrame frame = MakeFrame();
  EXPECT_EQ(DrawLiveView(&frame, {}, {}, {24, 80, true}).Text().find("drafts"), std::string::npos);
  SpecDecodingStats& stats = frame.engine.scheduler.spec_decoding;
  for (int i = 0; i < 400; ++i) stats.Add(SpeculativeMethod::kSuffix, 4, 3);
  stats.Add(SpeculativeMethod::kGrammar, 10, 10);
  const std::string text = DrawLiveView(&frame, {}, {}, {24, 80, true}).Text();
  EXPECT_NE(text.find("\ndrafts   1,210 of 1,610 accepted (75 %), mean acceptance length 4.02\n"), std::string::npos)
      << text;
}

TEST(LiveViewTest, SortsByEachColumn) {
  const LiveFrame frame = MakeFrame();
  using Order = std::vector<size_t>;
  EXPECT_EQ(SortedRequests(frame, LiveSort::kQueue), (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(SortedRequests(frame, LiveSort::kPrompt), (Order{2, 0, 1, 4, 3}));
  EXPECT_EQ(SortedRequests(frame, LiveSort::kOutput), (Order{0, 1, 3, 2, 4}));
  EXPECT_EQ(SortedRequests(frame, LiveSort::kSpeed), (Order{0, 1, 3, 2, 4}));
  EXPECT_EQ(SortedRequests(frame, LiveSort::kAge), (Order{4, 3, 2, 1, 0}));
  EXPECT_EQ(SortedRequests(frame, LiveSort::kState), (Order{0, 1, 4, 2, 3}));
}

TEST(LiveHistoryTest, ComputesRatesFromCounters) {
  const LiveFrame frame = MakeFrame();
  const LiveHistory history = MakeHistory(frame);
  ASSERT_EQ(history.samples().size(), 3u);
  const LiveSample& sample = history.samples().back();
  EXPECT_DOUBLE_EQ(sample.prompt_rate, 200.0);
  EXPECT_DOUBLE_EQ(sample.generation_rate, 40.0);
  EXPECT_DOUBLE_EQ(sample.tokens_per_step, 60.0);
  EXPECT_DOUBLE_EQ(sample.budget_use, 60.0 / 2048.0);
  EXPECT_NEAR(sample.step_time.count(), 0.05, 1e-9);
  EXPECT_NEAR(sample.rank_times.at(0).count(), 0.045, 1e-9);
}

TEST(LiveHistoryTest, AnotherEngineClearsTheHistory) {
  const LiveFrame frame = MakeFrame();
  LiveHistory history = MakeHistory(frame);
  EngineSnapshot other = frame.engine;
  other.time += milliseconds(500);
  other.num_executed_steps = 3;
  history.Add(other);
  EXPECT_TRUE(history.samples().empty());
}

// Records the calls of a viewer.
class FakeConnection final : public LiveConnection {
 public:
  std::optional<LiveFrame> Receive() override { return std::exchange(next, std::nullopt); }
  int fd() const override { return -1; }
  void SetDetail(RequestId request_id) override { calls += "detail " + std::to_string(request_id) + ";"; }
  void SetAdmissionPaused(bool paused) override { calls += paused ? "pause;" : "resume;"; }
  void AbortRequest(RequestId request_id) override { calls += "abort " + std::to_string(request_id) + ";"; }

  std::optional<LiveFrame> next = MakeFrame();
  std::string calls;
};

Key Character(char c) { return {KeyCode::kCharacter, static_cast<char32_t>(c)}; }

TEST(LiveControllerTest, AbortAsksFirst) {
  FakeConnection connection;
  LiveController controller({});
  controller.Receive(connection);
  controller.Handle({KeyCode::kDown}, connection);
  controller.Handle(Character('k'), connection);
  EXPECT_NE(controller.Draw({24, 80, true}).Text().find("abort request row-2? y/n"), std::string::npos);
  controller.Handle(Character('n'), connection);
  EXPECT_EQ(connection.calls, "");
  controller.Handle(Character('k'), connection);
  controller.Handle(Character('y'), connection);
  EXPECT_EQ(connection.calls, "abort 2;");
}

TEST(LiveControllerTest, PauseTogglesEvenBeforeTheNextFrame) {
  FakeConnection connection;
  LiveController controller({});
  controller.Receive(connection);
  controller.Handle(Character('p'), connection);
  controller.Handle(Character('p'), connection);
  EXPECT_EQ(connection.calls, "pause;resume;");
}

TEST(LiveControllerTest, LeavingAsksIfThereIsAQuestion) {
  FakeConnection connection;
  LiveController controller({.leave_question = "stop? y/n"});
  controller.Handle(Character('q'), connection);
  EXPECT_FALSE(controller.leaves());
  controller.Handle({KeyCode::kEscape}, connection);
  EXPECT_FALSE(controller.leaves());
  controller.Handle(Character('q'), connection);
  controller.Handle(Character('y'), connection);
  EXPECT_TRUE(controller.leaves());
}

TEST(LiveControllerTest, EveryLeaveKeyLeaves) {
  for (const Key key :
       {Character('q'), Key{KeyCode::kEscape}, Key{KeyCode::kF10}, Key{KeyCode::kInterrupt}, Key{KeyCode::kHangup}}) {
    FakeConnection connection;
    LiveController controller({});
    controller.Handle(key, connection);
    EXPECT_TRUE(controller.leaves());
  }
}

TEST(LiveControllerTest, EnterShowsTheTextAndEscapeReturns) {
  FakeConnection connection;
  LiveController controller({});
  controller.Receive(connection);
  controller.Handle({KeyCode::kEnter}, connection);
  connection.next = MakeFrame();
  connection.next->detail = LiveDetail{1, "why is\nthe sky blue?", "Because of scattering."};
  controller.Receive(connection);
  const std::string text = controller.Draw({24, 80, true}).Text();
  EXPECT_NE(text.find("\nthe sky blue?\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nBecause of scattering.\n"), std::string::npos) << text;
  controller.Handle({KeyCode::kEscape}, connection);
  EXPECT_FALSE(controller.leaves());
  EXPECT_EQ(connection.calls, "detail 1;detail 0;");
}

TEST(LiveViewTest, TextOfARequestIsWrappedAtTheWidth) {
  LiveFrame frame = MakeFrame();
  // A zero-width joiner makes the man and the woman one cluster. The x has two combining marks.
  frame.detail = LiveDetail{1, "abcdefgh一二三\n\n\tij", "123456789\U0001F468\u200D\U0001F469x\u0323\u0302y\x1b"};
  const std::string text =
      DrawLiveView(&frame, {}, {.panel = LivePanel::kDetail, .selected = 1}, {16, 10, true}).Text();
  EXPECT_EQ(text.substr(text.find("End of the")),
            "End of the\nabcdefgh一\n二三\n\n ij\nEnd of the\n123456789\n\U0001F468"
            "\u200D\U0001F469x\u0323\u0302y<1b>\n\n\n\n\nq or Esc:\n");
}

TEST(LiveControllerTest, TabChoosesAnotherProcess) {
  FakeConnection connection;
  LiveController controller({.list_processes = [] {
    return std::vector<LiveSocket>{{4711, "/a", "vllmcli batch"}, {12, "/b", "vllmcli chat"}};
  }});
  controller.Receive(connection);
  controller.Handle({KeyCode::kTab}, connection);
  EXPECT_NE(controller.Draw({24, 80, true}).Text().find("> 4711  vllmcli batch"), std::string::npos);
  controller.Handle({KeyCode::kDown}, connection);
  controller.Handle({KeyCode::kEnter}, connection);
  const std::optional<LiveSocket> chosen = controller.TakeChosenProcess();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->pid, 12);
}

TEST(CellGridTest, WideCharacterIsCutAtTheEdge) {
  CellGrid grid(1, 5);
  EXPECT_EQ(grid.Put(0, 0, "一二三"), 4);
  EXPECT_EQ(grid.Text(), "一二\n");
}

TEST(CellGridTest, OverwritingHalfAWideCharacterRemovesIt) {
  CellGrid grid(1, 4);
  grid.Put(0, 0, "一二");
  grid.Put(0, 1, "x");
  EXPECT_EQ(grid.Text(), " x二\n");
  grid.Put(0, 2, "y");
  EXPECT_EQ(grid.Text(), " xy\n");
}

TEST(CellGridTest, TextOutsideIsIgnored) {
  CellGrid grid(2, 4);
  grid.Put(-1, 0, "a");
  grid.Put(2, 0, "a");
  grid.Put(0, -2, "abcdefgh");
  grid.Put(1, 9, "a");
  EXPECT_EQ(grid.Text(), "cdef\n\n");
}

}  // namespace
}  // namespace vllm::app
