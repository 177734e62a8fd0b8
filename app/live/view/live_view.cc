#include "app/live/view/live_view.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include "app/live/view/kv_map.h"
#include "app/live/view/live_text.h"
#include "app/live/view/request_table.h"
#include "app/output/size_text.h"
#include "app/terminal/progress_line.h"
#include "app/terminal/safe_text.h"
#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

constexpr int kLabelColumns = 9;
constexpr Seconds kLongSilence{2};

// One line of the upper part. Lines with smaller ranks are chosen first if the screen is low.
struct Line {
  int rank;
  std::function<void(int row, CellGrid& grid)> draw;
};

void DrawTitle(const LiveFrame& frame, int row, CellGrid& grid) {
  const LiveProcess& process = frame.process;
  const CellStyle style = {.bold = true};
  const std::string uptime = "up " + ClockText(process.uptime);
  const int room = grid.columns() - NumColumns(uptime) - 1;
  if (grid.columns() >= 60) grid.PutRight(row, room + 1, NumColumns(uptime), uptime, style);
  // Only the last part of a path, which may be long.
  const std::string model = process.model.substr(process.model.find_last_of('/') + 1);
  grid.Put(row, 0, process.command + " " + std::to_string(process.pid) + "  " + model, style,
           grid.columns() >= 60 ? room : grid.columns());
}

std::string MachineText(const LiveProcess& process) {
  std::string text = CountedText(process.threads_per_rank, "thread");
  if (process.tensor_parallel_size > 1) {
    text = CountedText(process.tensor_parallel_size, "rank") + " of " + text;
  }
  if (process.data_parallel_size > 1) text = CountedText(process.data_parallel_size, "engine") + " of " + text;
  return text + ", memory " + SizeText(process.rss_bytes) + ", context " + GroupedText(process.max_model_len) +
         " tokens, " + process.dtype;
}

void DrawStatus(const LiveFrame& frame, int row, CellGrid& grid) {
  const SchedulerStats& stats = frame.engine.scheduler;
  int column = 0;
  if (stats.admission_paused) {
    column = grid.Put(row, column, "PAUSED", {.color = CellColor::kYellow, .bold = true, .reverse = true}) + 1;
  }
  std::string text =
      "running " + GroupedText(stats.num_running_reqs) + ", waiting " + GroupedText(stats.num_waiting_reqs);
  text += ", KV " + PercentText(stats.kv_cache_usage) + " of " + GroupedText(frame.engine.num_kv_blocks) + " blocks";
  text += ", prefix hits " + PercentText(stats.prefix_cache.HitRate()) + ", preempted " +
          GroupedText(stats.num_preemptions);
  if (stats.kv_transfer.num_loaded_tokens > 0) {
    text += ", " + GroupedText(stats.kv_transfer.num_loaded_tokens) + " tokens from disk";
  }
  grid.Put(row, column, text);
}

// Draws "label  value  sparkline".
void DrawRate(std::string_view label, const std::string& value, const std::string& spark, CellColor color, int row,
              CellGrid& grid) {
  grid.Put(row, 0, label, {.dim = true});
  const int column = grid.Put(row, kLabelColumns, value);
  grid.Put(row, column + 1, spark, {.color = color});
}

std::string RateText(double rate) {
  std::string text = rate >= 10000 ? GroupedText(static_cast<int64_t>(rate)) : FixedText(rate, 1);
  text.insert(0, text.size() < 8 ? 8 - text.size() : 0, ' ');
  return text + " tok/s";
}

std::string StepText(const LiveFrame& frame, const LiveSample& sample) {
  std::string text = ShortTimeText(sample.has_steps ? sample.step_time : frame.engine.last_step_time);
  text.insert(0, text.size() < 8 ? 8 - text.size() : 0, ' ');
  return text + ", " + FixedText(sample.tokens_per_step, 1) + " of " +
         GroupedText(frame.engine.max_num_batched_tokens) + " tokens (" + PercentText(sample.budget_use) + ")";
}

std::string RankText(const LiveSample& sample) {
  std::string text;
  for (const Seconds time : sample.rank_times) text += (text.empty() ? "" : "  ") + ShortTimeText(time);
  return text.empty() ? "-" : text;
}

// Returns text about all methods together.
std::string DraftsText(const SpecDecodingStats::Method& total) {
  return GroupedText(total.num_accepted_tokens) + " of " + GroupedText(total.num_draft_tokens) + " accepted (" +
         PercentText(static_cast<double>(total.num_accepted_tokens) / static_cast<double>(total.num_draft_tokens)) +
         "), mean acceptance length " + FixedText(total.MeanAcceptanceLength(), 2);
}

void DrawBatch(const LiveBatch& batch, bool utf8, int row, CellGrid& grid) {
  std::string text = GroupedText(batch.num_done);
  if (batch.num_rows) text += (batch.num_rows_is_estimate ? " of ~" : " of ") + GroupedText(*batch.num_rows);
  text += " rows, " + GroupedText(batch.num_failed) + " failed, ";
  text += batch.time_left ? "~" + ClockText(*batch.time_left) + " left" : ClockText(batch.elapsed);
  grid.Put(row, 0, "batch", {.dim = true});
  int column = grid.Put(row, kLabelColumns, text) + 1;
  if (!batch.num_rows || *batch.num_rows <= 0) return;
  const double share = static_cast<double>(batch.num_done) / static_cast<double>(*batch.num_rows);
  column = grid.Put(row, column, PercentText(share)) + 1;
  grid.Put(row, column, BarText(share, std::min(40, grid.columns() - column), utf8), {.color = CellColor::kGreen});
}

// Returns the lines of the upper part, in the order in which they are shown.
std::vector<Line> UpperLines(const LiveFrame& frame, const LiveHistory& history, const LiveViewSize& size) {
  const LiveSample sample = history.samples().empty() ? LiveSample() : history.samples().back();
  const LiveSample& steps = history.LastWithSteps();
  const auto spark = [&history, utf8 = size.utf8](double (*value)(const LiveSample&), double max, int row_columns,
                                                  int used) {
    return SparkText(history, value, std::min(120, row_columns - used - 1), max, utf8);
  };
  std::vector<Line> lines;
  lines.push_back({0, [&frame](int row, CellGrid& grid) { DrawTitle(frame, row, grid); }});
  lines.push_back(
      {6, [&frame](int row, CellGrid& grid) { grid.Put(row, 0, MachineText(frame.process), {.dim = true}); }});
  lines.push_back({1, [&frame](int row, CellGrid& grid) { DrawStatus(frame, row, grid); }});
  lines.push_back({4, [=](int row, CellGrid& grid) {
                     const std::string text = RateText(sample.prompt_rate);
                     DrawRate("prompt", text,
                              spark([](const LiveSample& s) { return s.prompt_rate; }, 0, grid.columns(),
                                    kLabelColumns + NumColumns(text)),
                              CellColor::kCyan, row, grid);
                   }});
  lines.push_back({2, [=](int row, CellGrid& grid) {
                     const std::string text = RateText(sample.generation_rate);
                     DrawRate("output", text,
                              spark([](const LiveSample& s) { return s.generation_rate; }, 0, grid.columns(),
                                    kLabelColumns + NumColumns(text)),
                              CellColor::kGreen, row, grid);
                   }});
  lines.push_back({5, [=, &frame](int row, CellGrid& grid) {
                     const std::string text = StepText(frame, steps);
                     DrawRate("step", text,
                              spark([](const LiveSample& s) { return s.budget_use; }, 1, grid.columns(),
                                    kLabelColumns + NumColumns(text)),
                              CellColor::kYellow, row, grid);
                   }});
  lines.push_back({7, [=, &frame](int row, CellGrid& grid) {
                     std::string text = "prefill " + PercentText(steps.prefill_share) + ", decode " +
                                        PercentText(steps.has_steps ? 1.0 - steps.prefill_share : 0.0);
                     text += ", steps " + GroupedText(frame.engine.num_executed_steps);
                     text += ", per rank " + RankText(steps);
                     grid.Put(row, 0, "tokens", {.dim = true});
                     grid.Put(row, kLabelColumns, text);
                   }});
  if (frame.engine.scheduler.spec_decoding.Total().num_draft_tokens > 0) {
    lines.push_back({8, [&frame](int row, CellGrid& grid) {
                       grid.Put(row, 0, "drafts", {.dim = true});
                       grid.Put(row, kLabelColumns, DraftsText(frame.engine.scheduler.spec_decoding.Total()));
                     }});
  }
  if (frame.batch) {
    lines.push_back(
        {3, [&frame, utf8 = size.utf8](int row, CellGrid& grid) { DrawBatch(*frame.batch, utf8, row, grid); }});
    int rank = 9;
    for (size_t i = frame.batch->errors.size(); i-- > 0;) {
      lines.push_back({rank++, [&frame, i](int row, CellGrid& grid) {
                         const LiveError& error = frame.batch->errors[i];
                         grid.Put(row, 0, "line " + std::to_string(error.line) + ": " + error.message,
                                  {.color = CellColor::kRed});
                       }});
    }
  }
  return lines;
}

void DrawMain(const LiveFrame& frame, const LiveHistory& history, const LiveViewState& state, const LiveViewSize& size,
              int num_rows, CellGrid& grid) {
  // The table gets at least a third of the screen.
  const int table_rows = std::max(num_rows >= 3 ? 1 : 0, num_rows / 3);
  const int64_t num_cells = std::max<int64_t>(1, static_cast<int64_t>(frame.engine.kv_blocks.size()));
  const int64_t columns = std::max(1, size.columns);
  const int64_t max_map_rows = std::clamp(num_rows / 6, 3, 10);
  const int map_rows =
      num_rows < 16 ? 0 : static_cast<int>(std::min(max_map_rows, 1 + (num_cells + columns - 1) / columns));
  std::vector<Line> lines = UpperLines(frame, history, size);
  size_t num_lines = static_cast<size_t>(std::max(0, num_rows - table_rows - map_rows));
  std::vector<int> ranks;
  for (const Line& line : lines) ranks.push_back(line.rank);
  std::sort(ranks.begin(), ranks.end());
  num_lines = std::min(num_lines, ranks.size());
  int row = 0;
  for (const Line& line : lines) {
    if (num_lines > 0 && line.rank <= ranks[num_lines - 1]) line.draw(row++, grid);
  }
  if (map_rows > 0) DrawKVMap(frame, row, map_rows, size.utf8, grid);
  row += map_rows;
  DrawRequestTable(frame, state, row, num_rows - row, grid);
}

void DrawHelp(const LiveViewState& state, CellGrid& grid) {
  std::vector<std::pair<std::string_view, std::string_view>> keys = {
      {"q Esc F10", "leave"},
      {"p", "pause or resume admission: while paused, no new request starts"},
      {"k F9", "abort the selected request"},
      {"s F6", "sort by the next column"},
      {"Up Down j", "select a request; also PgUp, PgDn, Home and End"},
      {"Enter", "show the request's text"},
      {"h ? F1", "this help"},
  };
  if (state.can_switch_process) keys.insert(keys.end() - 1, {"Tab", "choose another process"});
  int row = 0;
  grid.Put(row++, 0, "Keys", {.bold = true});
  for (const auto& [key, text] : keys) {
    grid.Put(row, 0, key, {.bold = true});
    grid.Put(row++, 12, text);
  }
  ++row;
  for (const std::string_view text : {"prompt: prompt tokens computed per second, without prefix-cache hits",
                                      "step: time and tokens of a step, and their share of --max-num-batched-tokens",
                                      "drafts: tokens that speculation drafted; see --speculative-config",
                                      "HIT: share of the prompt found in the prefix cache; FIRST: time to first token",
                                      "A letter in the map of KV blocks is that of the request in the table."}) {
    grid.Put(row++, 0, text);
  }
}

// Writes text with line breaks, wrapped at the width. Returns the next row.
int PutWrapped(std::string_view untrusted, int row, int end_row, CellGrid& grid) {
  // Filter first: a control character is shown in several columns, and a tab in one.
  std::string safe(SafeText(untrusted).view());
  std::replace(safe.begin(), safe.end(), '\t', ' ');
  std::string_view text = safe;
  while (!text.empty() && row < end_row) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    do {
      std::string_view part = FitColumns(line, grid.columns());
      if (part.empty()) part = line;  // the screen is narrower than a character
      grid.Put(row++, 0, part);
      line.remove_prefix(part.size());
    } while (!line.empty() && row < end_row);
  }
  return row;
}

void DrawDetail(const LiveFrame& frame, const LiveViewState& state, int num_rows, CellGrid& grid) {
  const auto& requests = frame.engine.requests;
  const auto found = std::find_if(requests.begin(), requests.end(),
                                  [&state](const RequestSnapshot& r) { return r.request_id == state.selected; });
  if (found == requests.end()) {
    grid.Put(0, 0, "This request has ended.");
    return;
  }
  int row = 0;
  grid.Put(row++, 0, "request " + found->external_req_id + ", " + std::string(LiveStateName(*found)), {.bold = true});
  grid.Put(row++, 0,
           "prompt " + GroupedText(found->num_prompt_tokens) + " tokens (" + GroupedText(found->num_cached_tokens) +
               " cached), computed " + GroupedText(found->num_computed_tokens) + ", output " +
               GroupedText(found->num_output_tokens) + " of " + GroupedText(found->max_tokens));
  grid.Put(row++, 0,
           "age " + ShortTimeText(found->age) + ", first token " +
               (found->time_to_first_token < Seconds(0) ? "-" : "after " + ShortTimeText(found->time_to_first_token)) +
               ", " + FixedText(RequestSpeed(*found), 1) + " tok/s, preempted " +
               std::to_string(found->num_preemptions) + " times, priority " + std::to_string(found->priority));
  if (!frame.detail || frame.detail->request_id != state.selected) return;
  // Half of the rest for the prompt, so that the output is always visible.
  const int prompt_end = row + 1 + std::max(1, (num_rows - row - 2) / 2);
  grid.Put(row++, 0, "End of the prompt", {.dim = true, .underline = true});
  row = PutWrapped(frame.detail->prompt, row, prompt_end, grid);
  grid.Put(row++, 0, "End of the output", {.dim = true, .underline = true});
  PutWrapped(frame.detail->output, row, num_rows, grid);
}

void DrawProcesses(const LiveViewState& state, int num_rows, CellGrid& grid) {
  grid.Put(0, 0, "Processes", {.bold = true});
  const size_t page = static_cast<size_t>(std::max(1, num_rows - 1));
  const size_t first = state.process_index / page * page;
  for (size_t i = first; i < std::min(first + page, state.processes.size()); ++i) {
    const bool is_selected = i == state.process_index;
    const int row = 1 + static_cast<int>(i - first);
    grid.SetStyle(row, 0, grid.columns(), {.reverse = is_selected});
    grid.Put(row, 0, (is_selected ? "> " : "  ") + state.processes[i], {.reverse = is_selected});
  }
}

void DrawFooter(const LiveFrame* frame, const LiveViewState& state, int row, CellGrid& grid) {
  if (!state.question.empty()) {
    grid.Put(row, 0, state.question, {.bold = true, .reverse = true});
    return;
  }
  if (!state.message.empty()) {
    grid.Put(row, 0, state.message, {.bold = true});
    return;
  }
  if (frame != nullptr && state.silence > kLongSilence) {
    grid.Put(row, 0, "no news for " + ShortTimeText(state.silence) + "; a long step is running", {.bold = true});
    return;
  }
  if (state.panel != LivePanel::kMain) {
    grid.Put(row, 0, "q or Esc: back", {.dim = true});
    return;
  }
  const bool is_paused = frame != nullptr && frame->engine.scheduler.admission_paused;
  std::vector<std::string> keys = {"q quit",  "h help", is_paused ? "p resume" : "p pause",
                                   "k abort", "s sort", "Enter text"};
  if (state.can_switch_process) keys.push_back("Tab process");
  int column = 0;
  for (const std::string& key : keys) {
    if (column + NumColumns(key) > grid.columns()) return;
    column = grid.Put(row, column, key, {.dim = true}) + 2;
  }
}

}  // namespace

std::string_view LiveSortName(LiveSort sort) {
  constexpr std::array<std::string_view, kNumLiveSorts> kNames = {"arrival", "prompt", "output",
                                                                  "speed",   "age",    "state"};
  return kNames[static_cast<size_t>(sort)];
}

std::vector<size_t> SortedRequests(const LiveFrame& frame, LiveSort sort) {
  const std::vector<RequestSnapshot>& requests = frame.engine.requests;
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto by = [&](auto&& key) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key(requests[a]) > key(requests[b]); });
  };
  switch (sort) {
    case LiveSort::kQueue:
      break;
    case LiveSort::kPrompt:
      by([](const RequestSnapshot& r) { return r.num_prompt_tokens; });
      break;
    case LiveSort::kOutput:
      by([](const RequestSnapshot& r) { return r.num_output_tokens; });
      break;
    case LiveSort::kSpeed:
      by(RequestSpeed);
      break;
    case LiveSort::kAge:
      by([](const RequestSnapshot& r) { return r.age; });
      break;
    case LiveSort::kState:
      // "writing", "waiting", "reading", "preempted"
      by([](const RequestSnapshot& r) { return LiveStateName(r); });
      break;
  }
  return order;
}

CellGrid DrawLiveView(const LiveFrame* frame, const LiveHistory& history, const LiveViewState& state,
                      const LiveViewSize& size) {
  CellGrid grid(size.rows, size.columns);
  // The last row is for keys and questions, unless the screen has only one.
  const int num_rows = size.rows > 1 ? size.rows - 1 : 1;
  if (state.panel == LivePanel::kHelp) {
    DrawHelp(state, grid);
  } else if (state.panel == LivePanel::kProcesses) {
    DrawProcesses(state, num_rows, grid);
  } else if (frame == nullptr) {
    grid.Put(0, 0, "waiting for the engine");
  } else if (state.panel == LivePanel::kDetail) {
    DrawDetail(*frame, state, num_rows, grid);
  } else {
    DrawMain(*frame, history, state, size, num_rows, grid);
  }
  if (size.rows > 1 || !state.question.empty()) {
    const int row = size.rows - 1;
    grid.Put(row, 0, std::string(static_cast<size_t>(std::max(0, size.columns)), ' '));
    DrawFooter(frame, state, row, grid);
  }
  return grid;
}

}  // namespace vllm::app
