// Decides whether text on a terminal has colors, from --color and the environment, and whether a terminal shows
// hyperlinks. The choice is global; main thread, before other threads start.
#pragma once

#include <cstdint>

namespace vllm::app {

enum class ColorChoice : uint8_t { kAuto, kAlways, kNever };

// Sets the value of --color.
void SetColorChoice(ColorChoice choice);

// Returns true if NO_COLOR is set and not empty, unless --color=always overrides it. It also disables cursor movement.
bool NoColorIsSet();
// Returns true if text on `fd` may have colors and other attributes. In this order: --color=always and --color=never,
// NO_COLOR, CLICOLOR_FORCE and FORCE_COLOR (set and not 0), CLICOLOR=0; otherwise, true if `fd` is a terminal and TERM
// is neither empty nor dumb.
bool MayColor(int fd);
// Returns true if the environment names a terminal that is known to show hyperlinks (OSC 8).
bool ShowsHyperlinks();

}  // namespace vllm::app
