#include "app/live/view/live_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace vllm::app {
namespace {

constexpr std::array<std::string_view, 9> kUtf8Levels = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 9> kAsciiLevels = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};

template <typename... Values>
std::string Format(const char* format, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

}  // namespace

std::string ClockText(Seconds time) {
  const auto seconds = static_cast<long long>(std::clamp(time.count(), 0.0, 1e9));
  if (seconds >= 86400) return Format("%lldd %02lld:%02lld", seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
  return Format("%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string ShortTimeText(Seconds time) {
  const double seconds = std::clamp(time.count(), 0.0, 1e9);
  if (seconds < 0.001) return Format("%.0fus", seconds * 1e6);
  if (seconds < 0.1) return Format("%.1fms", seconds * 1e3);
  if (seconds < 1) return Format("%.0fms", seconds * 1e3);
  if (seconds < 100) return Format("%.1fs", seconds);
  if (seconds < 6000) return Format("%d:%02d", static_cast<int>(seconds) / 60, static_cast<int>(seconds) % 60);
  return Format("%.0fh", seconds / 3600);
}

std::string BarText(double share, int width, bool utf8) {
  const int inner = width - 2;
  if (inner <= 0) return "";
  const double clamped = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const int filled = static_cast<int>(std::lround(clamped * inner));
  std::string text = "[";
  for (int i = 0; i < inner; ++i) text += i < filled ? (utf8 ? "█" : "#") : (utf8 ? "·" : ".");
  return text + "]";
}

std::string SparkText(const LiveHistory& history, const std::function<double(const LiveSample&)>& value, int width,
                      double max, bool utf8) {
  if (width <= 0) return "";
  const auto& samples = history.samples();
  const size_t shown = std::min(samples.size(), static_cast<size_t>(width));
  double top = max;
  if (max <= 0) {
    for (size_t i = samples.size() - shown; i < samples.size(); ++i) top = std::max(top, value(samples[i]));
  }
  const auto& levels = utf8 ? kUtf8Levels : kAsciiLevels;
  std::string text(static_cast<size_t>(width) - shown, ' ');
  for (size_t i = samples.size() - shown; i < samples.size(); ++i) {
    const double current = value(samples[i]);
    const double share = top > 0 && std::isfinite(current) ? std::clamp(current / top, 0.0, 1.0) : 0.0;
    // A value that is not 0 shows at least the lowest mark.
    text += levels[static_cast<size_t>(std::ceil(share * 8))];
  }
  return text;
}

char LetterOf(RequestId request_id) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  return kLetters[request_id % kLetters.size()];
}

CellColor ColorOf(RequestId request_id) { return static_cast<CellColor>(1 + request_id % 6); }

}  // namespace vllm::app
