// DrawKVMap: the map of the KV blocks. A cell stands for one block or for several and shows the most frequent state
// of those that are not free: the letter of the request that uses it, shared, or cached. Pure function; any thread.
#pragma once

#include "app/live/live_frame.h"
#include "app/screen/cell_grid.h"

namespace vllm::app {

// Draws into `num_rows` rows of the grid from `row` on; the first is a legend. Draws nothing if num_rows < 2.
void DrawKVMap(const LiveFrame& frame, int row, int num_rows, bool utf8, CellGrid& grid);

}  // namespace vllm::app
