// StepCost: estimates how long a decode step takes from its number of rows (tokens), from the steps that have run on
// this machine. While the weights are the bottleneck, more rows cost almost nothing, and how far that goes depends on
// the model, the CPU and what else runs on it. Owned by the Speculator; engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm {

class StepCost {
 public:
  // Adds the time of a step that decoded `num_rows` tokens and computed no prompt. REQUIRES: num_rows > 0.
  void Add(int64_t num_rows, double seconds);

  // Returns the estimated seconds of a step with `num_rows` rows; 0 before the first Add. More rows never have a lower
  // estimate. Steps that ran long ago count less, and finally not at all. Then, as for rows that never ran, the
  // estimate follows from fewer rows and is low, so that they are tried (again). REQUIRES: num_rows > 0.
  double Estimate(int64_t num_rows);

 private:
  struct Entry {
    double seconds = 0;  // recent mean
    double weight = 0;   // number of steps that it rests on, at most kMaxWeight
    int64_t last = 0;    // num_added_ at the last of them
  };
  struct Point {
    double rows = 0;
    double seconds = 0;
    double weight = 0;
  };
  static constexpr double kMaxWeight = 8;

  // Returns the entry for a number of rows. From 64 rows on, similar numbers share an entry.
  static size_t IndexOf(int64_t num_rows);
  static int64_t RowsOf(size_t index);
  void MakeCurve();

  std::vector<Entry> entries_;
  int64_t num_added_ = 0;
  std::vector<Point> curve_;  // by rows; the seconds never decrease
  bool is_current_ = false;   // curve_ belongs to entries_
};

}  // namespace vllm
