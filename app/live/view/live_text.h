// Pieces of the live view: durations, bars and sparklines as text. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/live/view/live_history.h"
#include "app/screen/cell_grid.h"

namespace vllm::app {

// Returns "0:01:02", or "2d 03:04" from a day on.
std::string ClockText(Seconds time);
// Returns "850us", "12.3ms", "4.5s" or "12:34".
std::string ShortTimeText(Seconds time);

// Returns `width` columns that show `share` (0 to 1) of a bar: "[###...]" in ASCII.
std::string BarText(double share, int width, bool utf8);
// Returns `width` columns with the last values of the history, the newest at the right. A value of `max` is the
// highest; if max is 0, the largest shown value is.
std::string SparkText(const LiveHistory& history, const std::function<double(const LiveSample&)>& value, int width,
                      double max, bool utf8);

// The letter and the color that stand for a request in the KV block map and in the table.
char LetterOf(RequestId request_id);
CellColor ColorOf(RequestId request_id);

}  // namespace vllm::app
