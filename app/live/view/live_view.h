// DrawLiveView: the live view of an engine as a grid of cells. It shows no information by color alone: a bar or a
// sparkline has its number next to it, and a request's KV blocks have its letter. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/live/live_frame.h"
#include "app/live/view/live_history.h"
#include "app/screen/cell_grid.h"

namespace vllm::app {

enum class LiveSort : uint8_t { kQueue, kPrompt, kOutput, kSpeed, kAge, kState };
inline constexpr int kNumLiveSorts = 6;
std::string_view LiveSortName(LiveSort sort);

enum class LivePanel : uint8_t { kMain, kHelp, kDetail, kProcesses };

struct LiveViewState {
  LivePanel panel = LivePanel::kMain;
  LiveSort sort = LiveSort::kQueue;
  RequestId selected = 0;                   // 0: none
  std::string question = {};                // shown instead of the keys, if not empty
  std::string message = {};                 // shown instead of the keys, if not empty and there is no question
  std::vector<std::string> processes = {};  // the lines of the list of processes
  size_t process_index = 0;                 // the selected line
  bool can_switch_process = false;
  Seconds silence{0};  // since the last frame
};

struct LiveViewSize {
  int rows = 24;
  int columns = 80;
  bool utf8 = true;  // false: only ASCII
};

// `frame` is null before the first frame.
CellGrid DrawLiveView(const LiveFrame* frame, const LiveHistory& history, const LiveViewState& state,
                      const LiveViewSize& size);

// Returns the indexes of frame.engine.requests in the order in which the table shows them.
std::vector<size_t> SortedRequests(const LiveFrame& frame, LiveSort sort);

}  // namespace vllm::app
