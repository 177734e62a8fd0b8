#include "app/live/view/request_table.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "app/live/view/live_text.h"
#include "app/output/size_text.h"
#include "app/terminal/safe_text.h"
#include "app/terminal/text_width.h"

namespace vllm::app {
namespace {

enum class Column : uint8_t { kName, kState, kPrompt, kHit, kOutput, kSpeed, kAge, kFirst, kText };

struct ColumnInfo {
  Column column;
  std::string_view title;
  int width;
  bool right;     // aligned to the right
  int rank;       // columns with smaller ranks are chosen first
  LiveSort sort;  // the order that this column shows; kQueue: none
};

// In the order in which they are shown. The text takes the rest of the row.
constexpr std::array<ColumnInfo, 9> kColumns = {{
    {Column::kName, "REQUEST", 8, false, 0, LiveSort::kQueue},
    {Column::kState, "STATE", 9, false, 2, LiveSort::kState},
    {Column::kPrompt, "PROMPT", 11, true, 3, LiveSort::kPrompt},
    {Column::kHit, "HIT", 5, true, 6, LiveSort::kQueue},
    {Column::kOutput, "OUT/MAX", 9, true, 1, LiveSort::kOutput},
    {Column::kSpeed, "TOK/S", 6, true, 4, LiveSort::kSpeed},
    {Column::kAge, "AGE", 6, true, 5, LiveSort::kAge},
    {Column::kFirst, "FIRST", 6, true, 7, LiveSort::kQueue},
    {Column::kText, "END OF PROMPT", 8, false, 8, LiveSort::kQueue},
}};
constexpr int kMarkColumns = 2;  // the request's letter and a space

// Returns the end of `untrusted` that is at most `width` columns wide, filtered and on one line.
std::string LastColumns(std::string_view untrusted, int width) {
  const SafeText safe = SafeLine(untrusted);
  std::string_view text = safe.view();
  // Subtracts, because another process may send 64 KiB, which would take long to measure for each character.
  int columns = NumColumns(text);
  while (columns > width) {
    const std::string_view first = text.substr(0, ClusterAt(text, 0).num_bytes);
    columns -= NumColumns(first);
    text.remove_prefix(first.size());
  }
  return std::string(text);
}

std::string CellText(Column column, const RequestSnapshot& request, const std::string& prompt, int width) {
  switch (column) {
    case Column::kName:
      return request.external_req_id.empty() ? std::to_string(request.request_id) : request.external_req_id;
    case Column::kState:
      return std::string(LiveStateName(request));
    case Column::kPrompt: {
      const std::string total = std::to_string(request.num_prompt_tokens);
      if (LiveStateName(request) != "reading") return total;
      return std::to_string(std::min(request.num_computed_tokens, request.num_prompt_tokens)) + "/" + total;
    }
    case Column::kHit:
      return request.num_prompt_tokens == 0 ? "-"
                                            : PercentText(static_cast<double>(request.num_cached_tokens) /
                                                          static_cast<double>(request.num_prompt_tokens));
    case Column::kOutput:
      return std::to_string(request.num_output_tokens) + "/" + std::to_string(request.max_tokens);
    case Column::kSpeed:
      return request.num_output_tokens < 2 ? "-" : FixedText(RequestSpeed(request), 1);
    case Column::kAge:
      return ShortTimeText(request.age);
    case Column::kFirst:
      return request.time_to_first_token < Seconds(0) ? "-" : ShortTimeText(request.time_to_first_token);
    case Column::kText:
      return LastColumns(prompt, width);
  }
  return "";
}

// Returns the width of each column, 0 for those that do not fit.
std::array<int, kColumns.size()> Widths(int columns) {
  std::array<int, kColumns.size()> widths{};
  int left = columns - kMarkColumns;
  for (int rank = 0; rank < static_cast<int>(kColumns.size()); ++rank) {
    for (size_t i = 0; i < kColumns.size(); ++i) {
      if (kColumns[i].rank != rank || left <= 0) continue;
      // The most important column is shown even if it has to be narrower.
      if (kColumns[i].width > left && rank > 0) {
        left = 0;
        continue;
      }
      widths[i] = std::min(kColumns[i].width, left);
      left -= widths[i] + 1;
    }
  }
  if (left > 0) {
    // The name, up to a limit, and the text take the rest.
    constexpr int kMaxNameColumns = 16;
    const size_t last = kColumns.size() - 1;
    const int to_name = widths[last] > 0 ? std::min(left / 4, kMaxNameColumns - widths[0]) : left;
    widths[0] += to_name;
    if (widths[last] > 0) widths[last] += left - to_name;
  }
  return widths;
}

}  // namespace

double RequestSpeed(const RequestSnapshot& request) {
  if (request.num_output_tokens < 2 || request.decode_time <= Seconds(0)) return 0.0;
  return static_cast<double>(request.num_output_tokens - 1) / request.decode_time.count();
}

void DrawRequestTable(const LiveFrame& frame, const LiveViewState& state, int row, int num_rows, CellGrid& grid) {
  if (num_rows < 1) return;
  const std::array<int, kColumns.size()> widths = Widths(grid.columns());
  const bool has_header = num_rows > 1;
  if (has_header) {
    grid.SetStyle(row, 0, grid.columns(), {.reverse = true});
    int column = kMarkColumns;
    for (size_t i = 0; i < kColumns.size(); ++i) {
      if (widths[i] == 0) continue;
      const bool is_sorted = state.sort != LiveSort::kQueue && kColumns[i].sort == state.sort;
      const std::string title = std::string(kColumns[i].title) + (is_sorted ? "<" : "");
      const CellStyle style = {.bold = is_sorted, .reverse = true};
      if (kColumns[i].right) {
        grid.PutRight(row, column, widths[i], title, style);
      } else {
        grid.Put(row, column, title, style, widths[i]);
      }
      column += widths[i] + 1;
    }
    ++row;
    --num_rows;
  }
  const std::vector<size_t> order = SortedRequests(frame, state.sort);
  if (order.empty()) {
    grid.Put(row, 0, "no requests", {.dim = true});
    return;
  }
  size_t selected = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (frame.engine.requests[order[i]].request_id == state.selected) selected = i;
  }
  const auto page = static_cast<size_t>(num_rows);
  const size_t first = selected / page * page;
  for (size_t i = first; i < std::min(first + page, order.size()); ++i, ++row) {
    const RequestSnapshot& request = frame.engine.requests[order[i]];
    const std::string prompt = order[i] < frame.prompts.size() ? frame.prompts[order[i]] : "";
    const bool is_selected = request.request_id == state.selected;
    const CellStyle style = {.dim = request.status != RequestStatus::kRunning, .reverse = is_selected};
    grid.SetStyle(row, 0, grid.columns(), style);
    const bool has_blocks = request.status == RequestStatus::kRunning;
    grid.Put(row, 0, has_blocks ? std::string(1, LetterOf(request.request_id)) : std::string(" "),
             {.color = has_blocks ? ColorOf(request.request_id) : CellColor::kDefault, .reverse = is_selected});
    grid.Put(row, 1, is_selected ? ">" : " ", style);
    int column = kMarkColumns;
    for (size_t k = 0; k < kColumns.size(); ++k) {
      if (widths[k] == 0) continue;
      const std::string text = CellText(kColumns[k].column, request, prompt, widths[k]);
      if (kColumns[k].right) {
        grid.PutRight(row, column, widths[k], text, style);
      } else {
        grid.Put(row, column, text, style, widths[k]);
      }
      column += widths[k] + 1;
    }
  }
}

}  // namespace vllm::app
