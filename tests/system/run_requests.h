// Runs a list of requests through the whole engine (front end, core thread or in-process core, scheduler, real model)
// and returns each result as one string, so that tests can compare runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/core/engine_core_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/request/scheduler_stats.h"
#include "tokenizer/tokenizer.h"

namespace vllm::testing_support {

struct TestRequest {
  std::string id;
  Prompt prompt;
  SamplingParams params;
  RequestOptions options = {};
};

struct RunResult {
  // Maps a request's id to its whole result as a string: text, tokens, finish and stop reason, logprob bits and error.
  std::map<std::string, std::string> outputs;
  SchedulerStats stats;
};

struct RunHow {
  bool in_process = false;        // use the in-process client, which runs no step on its own
  bool one_at_a_time = false;     // finish each request before the next one is added
  int64_t num_steps_between = 0;  // call LLMEngine::Step this often before the next request is added
  ExecutorFactory factory = MakeExecutor;
  std::shared_ptr<const ReasoningFormat> reasoning_format = nullptr;
};

// If the engine rejects a request, its result is "rejected: " and the error message.
// There are config.parallel.data_parallel_size engines. REQUIRES: config.Finalize() was called.
RunResult RunRequests(const VllmConfig& config, const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer,
                      const std::vector<TestRequest>& requests, const RunHow& how = {});

}  // namespace vllm::testing_support
