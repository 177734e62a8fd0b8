// DrawRequestTable: the table of running and waiting requests. Columns that do not fit are left out, the least
// important first. Pure functions; any thread.
#pragma once

#include "app/live/live_frame.h"
#include "app/live/view/live_view.h"
#include "app/screen/cell_grid.h"

namespace vllm::app {

// Draws the header and as many requests as fit into `num_rows` rows from `row` on. Shows the page with the selected
// request.
void DrawRequestTable(const LiveFrame& frame, const LiveViewState& state, int row, int num_rows, CellGrid& grid);

// Returns the tokens per second between the first token of a request and its last.
double RequestSpeed(const RequestSnapshot& request);

}  // namespace vllm::app
