// StopChecker: finds the stop string that ends first in a growing text. Owned by an IncrementalDetokenizer;
// immutable after construction, so any thread may call it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

class StopChecker {
 public:
  // REQUIRES: no string is empty and all are valid UTF-8.
  StopChecker(std::vector<std::string> stop, bool include_stop_str_in_output);

  struct Match {
    size_t stop_index;   // index of the stop string
    size_t output_size;  // bytes of the text that belong to the output
  };
  // Finds a stop string that ends within the last `num_new_bytes` of `text`. If there are several, returns the one that
  // ends first, and of those that end at the same byte the first one in the list.
  std::optional<Match> Find(std::string_view text, size_t num_new_bytes) const;

  // Returns the number of code points to hold back while the sequence runs: one less than in the longest stop string,
  // or 0 if there are no stop strings or they stay in the output.
  size_t holdback() const { return holdback_; }
  const std::string& stop(size_t index) const { return stop_[index]; }
  bool empty() const { return stop_.empty(); }

 private:
  std::vector<std::string> stop_;
  bool include_;
  size_t holdback_ = 0;
};

}  // namespace vllm
