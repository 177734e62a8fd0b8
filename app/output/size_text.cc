#include "app/output/size_text.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "app/terminal/progress_line.h"

namespace vllm::app {
namespace {

std::string Scaled(int64_t value, const std::array<const char*, 5>& units, const char* format) {
  double scaled = static_cast<double>(value);
  size_t unit = 0;
  while (scaled >= 1000.0 && unit + 1 < units.size()) {
    scaled /= 1000.0;
    ++unit;
  }
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : format, scaled, units[unit]);
  std::string out = text.data();
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace

std::string SizeText(int64_t bytes) { return Scaled(bytes, {"B", "kB", "MB", "GB", "TB"}, "%.1f %s"); }
std::string CountText(int64_t count) { return Scaled(count, {"", "K", "M", "B", "T"}, "%.2f %s"); }

std::string CountedText(int64_t count, std::string_view noun) {
  return GroupedText(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string PercentText(double share) { return FixedText(100.0 * share, share > 0.0 && share < 0.0995 ? 1 : 0) + " %"; }

std::string FixedText(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

}  // namespace vllm::app
