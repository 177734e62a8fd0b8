#include "app/terminal/color_policy.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace vllm::app {
namespace {

ColorChoice g_choice = ColorChoice::kAuto;

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsForced(const char* name) {
  const std::string_view value = Environment(name);
  return !value.empty() && value != "0";
}

}  // namespace

void SetColorChoice(ColorChoice choice) { g_choice = choice; }

bool NoColorIsSet() { return g_choice != ColorChoice::kAlways && !Environment("NO_COLOR").empty(); }

bool MayColor(int fd) {
  if (g_choice != ColorChoice::kAuto) return g_choice == ColorChoice::kAlways;
  if (NoColorIsSet()) return false;
  if (IsForced("CLICOLOR_FORCE") || IsForced("FORCE_COLOR")) return true;
  if (Environment("CLICOLOR") == "0") return false;
  const std::string_view terminal = Environment("TERM");
  return isatty(fd) == 1 && !terminal.empty() && terminal != "dumb";
}

bool ShowsHyperlinks() {
  const std::string_view terminal = Environment("TERM");
  // Multiplexers swallow links in the versions of Debian 12, and set none of the variables below reliably.
  if (!Environment("TMUX").empty() || terminal.starts_with("tmux") || terminal.starts_with("screen")) return false;
  if (std::atoi(std::getenv("VTE_VERSION") == nullptr ? "0" : std::getenv("VTE_VERSION")) >= 5000) return true;
  if (!Environment("WT_SESSION").empty() || !Environment("KITTY_WINDOW_ID").empty()) return true;
  for (const std::string_view name : {"xterm-kitty", "xterm-ghostty", "foot", "foot-extra", "alacritty", "wezterm"}) {
    if (terminal == name) return true;
  }
  const std::string_view program = Environment("TERM_PROGRAM");
  for (const std::string_view name : {"iTerm.app", "WezTerm", "ghostty", "vscode", "Hyper", "rio"}) {
    if (program == name) return true;
  }
  return false;
}

}  // namespace vllm::app
