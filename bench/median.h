// The median of measurements. Pure functions; any thread.
#pragma once

#include <algorithm>
#include <vector>

namespace vllm {

// REQUIRES: values is not empty.
inline double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace vllm
