#include "app/output/duration_text.h"

#include <algorithm>
#include <cstdint>

namespace vllm::app {

std::string DurationText(std::chrono::milliseconds time) {
  const int64_t seconds = std::max<int64_t>(0, time.count() / 1000);
  if (seconds < 60) return std::to_string(seconds) + " s";
  if (seconds < 3600) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
}

}  // namespace vllm::app
