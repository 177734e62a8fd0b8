// ReplayTrace: gives the recorded inputs of a trace to a new Scheduler and compares its decisions with the recorded
// ones. Treats the trace as untrusted. Any thread.
//
// The replay makes up the tokens: the last token of each full block is a number that stands for the block's tag, and
// all other tokens are 0. A block is then equal to another one exactly if their tags are equal, and the Scheduler looks
// at tokens for two purposes only: it compares full blocks, and CheckStop compares a sampled token with EOS and the
// stop tokens. That second result is an input of the replay. The lengths that end a request are checked again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/trace/trace_reader.h"

namespace vllm {

struct ReplayLimits {
  size_t max_scheduler_bytes = size_t{2} << 30;  // for the Scheduler's blocks
  size_t max_token_bytes = size_t{1} << 30;      // for the tokens of unfinished requests
  size_t max_tag_bytes = size_t{4} << 30;        // for the different tags of the trace
  int64_t max_model_len = int64_t{1} << 30;
};

struct ReplayResult {
  int64_t num_steps = 0;
  int64_t num_requests = 0;  // that the Scheduler accepted
  int64_t num_preemptions = 0;
  int64_t num_cached_tokens = 0;  // prefix-cache hits
  bool has_end = false;           // the trace says that the engine shut down normally
  // How the first different decision differs, `at step <number>: ...` or `before step ...`; empty: all decisions are
  // equal. Steps count from 1.
  std::string difference;
};

// Reads `reader` to its end, or to the first difference. Throws ModelError if the trace is damaged or contains records
// that no engine writes, and ResourceError if the replay needs more memory than `limits` allow.
ReplayResult ReplayTrace(TraceReader& reader, const ReplayLimits& limits = {});

}  // namespace vllm
