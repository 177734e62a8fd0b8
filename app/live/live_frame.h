// LiveFrame: the state of a process that runs an engine, for a viewer, and its form as JSON. The text in it comes from
// prompts, files and other processes and is untrusted. A plain value and pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/request/engine_snapshot.h"

namespace vllm::app {

// The process and its model.
struct LiveProcess {
  int64_t pid = 0;
  std::string command;  // "batch", "chat", ...
  std::string model;
  std::string dtype;
  int64_t tensor_parallel_size = 1;
  int64_t data_parallel_size = 1;
  int64_t threads_per_rank = 1;
  int64_t max_model_len = 0;
  int64_t rss_bytes = 0;
  Seconds uptime{0};
};

struct LiveError {
  int64_t line = 0;  // of the input file
  std::string message;
};

// The progress of a batch.
struct LiveBatch {
  static constexpr size_t kMaxErrors = 5;

  std::string input;
  std::string output;  // empty: standard output
  int64_t num_done = 0;
  int64_t num_failed = 0;
  std::optional<int64_t> num_rows;  // of the whole input
  bool num_rows_is_estimate = false;
  int64_t num_prompt_tokens = 0;
  int64_t num_generation_tokens = 0;
  Seconds elapsed{0};
  std::optional<Seconds> time_left;
  std::vector<LiveError> errors;  // the last ones, at most kMaxErrors
};

// The text of one request.
struct LiveDetail {
  RequestId request_id = 0;
  std::string prompt;  // the end of the prompt
  std::string output;  // the end of the output
};

struct LiveFrame {
  LiveProcess process;
  EngineSnapshot engine;             // without token ids
  std::vector<std::string> prompts;  // the ends of the prompts of engine.requests, in the same order
  std::optional<LiveBatch> batch;
  std::optional<LiveDetail> detail;
};

// The form in which the frame is sent and in which top --json prints it. Times are in seconds, a list of KV blocks is
// [state, count, state, count, ...] with the states of EngineSnapshot, and "speculation" is a SpeculationJson.
nlohmann::ordered_json LiveFrameJson(const LiveFrame& frame);

// Reads the output of LiveFrameJson. Returns false if a field is missing, has the wrong type or is out of range.
bool ReadLiveFrame(const nlohmann::ordered_json& json, LiveFrame& frame);

// Returns "waiting", "reading", "writing" or "preempted".
std::string_view LiveStateName(const RequestSnapshot& request);

}  // namespace vllm::app
