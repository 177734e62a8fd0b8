// ForEachRow: runs row-wise work on a rank's threads and returns when all rows are done. Owns nothing. Called from the
// rank's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/layers/step_context.h"

namespace vllm {

// Calls f(row) or f(row, thread) for every row in [0, num_rows), on the rank's threads: thread <
// step.threads->num_threads(). `row_size` is the cost of one row, as a number of elements. Small inputs run on few
// threads, because waking a thread takes longer than the work.
template <typename F>
void ForEachRow(const StepContext& step, int64_t num_rows, int64_t row_size, const F& f) {
  constexpr int64_t kMinElementsPerTask = 1 << 16;
  const int64_t rows_per_task = std::max<int64_t>(1, kMinElementsPerTask / std::max<int64_t>(1, row_size));
  const int64_t num_tasks = (num_rows + rows_per_task - 1) / rows_per_task;
  step.threads->ParallelFor(num_tasks, [&](int64_t task, [[maybe_unused]] int thread) {
    const int64_t end = std::min(num_rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < end; ++row) {
      if constexpr (std::is_invocable_v<const F&, int64_t, int>) {
        f(row, thread);
      } else {
        f(row);
      }
    }
  });
}

}  // namespace vllm
