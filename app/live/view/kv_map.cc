#include "app/live/view/kv_map.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "app/live/view/live_text.h"
#include "app/terminal/progress_line.h"

namespace vllm::app {
namespace {

// Ignores free blocks, unless all are free: otherwise a large cache that is used a little would look empty.
uint16_t MostFrequent(const std::vector<uint16_t>& states, size_t begin, size_t end) {
  std::unordered_map<uint16_t, int> counts;
  uint16_t best = EngineSnapshot::kFree;
  for (size_t i = begin; i < end; ++i) {
    if (states[i] != EngineSnapshot::kFree && ++counts[states[i]] > counts[best]) best = states[i];
  }
  return best;
}

Cell CellOf(uint16_t state, const EngineSnapshot& engine, bool utf8) {
  switch (state) {
    case EngineSnapshot::kFree:
      return {utf8 ? "·" : ".", {.dim = true}};
    case EngineSnapshot::kCachedFree:
      return {utf8 ? "░" : "-", {}};
    case EngineSnapshot::kShared:
      return {utf8 ? "█" : "#", {.bold = true}};
    case EngineSnapshot::kUsed:
      return {"?", {}};
    default:
      break;
  }
  const size_t row = static_cast<size_t>(state) - EngineSnapshot::kFirstRequest;
  if (row >= engine.requests.size()) return {"?", {}};
  const RequestId id = engine.requests[row].request_id;
  return {std::string(1, LetterOf(id)), {.color = ColorOf(id)}};
}

}  // namespace

void DrawKVMap(const LiveFrame& frame, int row, int num_rows, bool utf8, CellGrid& grid) {
  const std::vector<uint16_t>& states = frame.engine.kv_blocks;
  if (num_rows < 2 || grid.columns() < 1 || states.empty()) return;
  const size_t room = static_cast<size_t>(num_rows - 1) * static_cast<size_t>(grid.columns());
  const size_t per_cell = (states.size() + room - 1) / room;
  const int64_t num_blocks = static_cast<int64_t>(per_cell) * frame.engine.blocks_per_cell;
  std::string legend = "KV blocks, " + (num_blocks == 1 ? "one" : GroupedText(num_blocks)) + " per cell: ";
  legend += utf8 ? "A-z request, █ shared, ░ cached, · free" : "A-z request, # shared, - cached, . free";
  grid.Put(row, 0, legend, {.dim = true});
  for (size_t begin = 0, cell = 0; begin < states.size(); begin += per_cell, ++cell) {
    const uint16_t state = MostFrequent(states, begin, std::min(begin + per_cell, states.size()));
    const Cell drawn = CellOf(state, frame.engine, utf8);
    const auto columns = static_cast<size_t>(grid.columns());
    grid.Put(row + 1 + static_cast<int>(cell / columns), static_cast<int>(cell % columns), drawn.text, drawn.style);
  }
}

}  // namespace vllm::app
