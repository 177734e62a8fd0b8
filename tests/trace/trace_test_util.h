// Helpers of the trace tests: random engine runs that are recorded, and changes to recorded traces. Each function is
// called by one thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/engine_core.h"
#include "engine/trace/trace_recorder.h"
#include "engine/trace/trace_replay.h"
#include "tests/engine/fake_executor.h"
#include "tests/support/temp_directory.h"

namespace vllm {

inline std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline ReplayResult ReplayOf(std::string_view bytes) {
  TraceReader reader(TraceBytes(bytes));
  return ReplayTrace(reader);
}

// Returns all records, including the first.
inline std::vector<TraceRecord> RecordsOf(std::string_view bytes) {
  TraceReader reader(TraceBytes(bytes));
  std::vector<TraceRecord> records(1);
  records[0].type = TraceRecordType::kBegin;
  records[0].begin = reader.begin();
  TraceRecord record;
  while (reader.Next(record)) records.push_back(record);
  EXPECT_EQ(reader.num_torn_bytes(), 0u);
  return records;
}

inline std::string BytesOf(const std::vector<TraceRecord>& records) {
  std::string bytes = std::string(kTraceMagic) + std::to_string(kTraceVersion) + "\n";
  std::string payload;
  for (const TraceRecord& record : records) EXPECT_TRUE(AppendTraceRecord(record, payload, bytes));
  return bytes;
}

using Tokens = std::map<RequestId, std::vector<int32_t>>;

// Steps the engine until it has no requests. Calls `before_step` before each step.
inline Tokens RunTraced(EngineCore& engine_core, const std::function<void(int64_t step)>& before_step = {}) {
  Tokens tokens;
  EngineCoreOutputs outputs;
  for (int64_t step = 0; engine_core.HasRequests() && step < 100000; ++step) {
    if (before_step) before_step(step);
    engine_core.Step(outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto& answer = tokens[outputs[i].request_id];
      answer.insert(answer.end(), outputs[i].new_token_ids.begin(), outputs[i].new_token_ids.end());
    }
  }
  return tokens;
}

// A run with preemptions and prefix-cache hits: six requests that share 40 tokens, and too few blocks for all.
inline VllmConfig BusyConfig() {
  VllmConfig config = testing::FakeConfig();
  config.cache.num_blocks_override = 14;
  config.scheduler.max_num_batched_tokens = 48;
  return config;
}

inline void AddBusyRequests(EngineCore& engine_core) {
  for (RequestId id = 1; id <= 6; ++id) {
    std::vector<int32_t> prompt(40, 7);
    for (int32_t i = 0; i < 12; ++i) prompt.push_back(static_cast<int32_t>(id) * 20 + i);
    SamplingParams params;
    params.ignore_eos = true;
    engine_core.AddRequest(testing::FakeRequest(id, prompt, 30, params));
  }
}

// Returns the trace of such a run.
inline std::string BusyTrace() {
  const TempDirectory directory;
  TraceRecorder recorder(directory.path() + "/trace");
  {
    EngineCore engine_core(BusyConfig(), testing::FakeExecutorFactory(), nullptr, &recorder);
    AddBusyRequests(engine_core);
    RunTraced(engine_core);
  }
  EXPECT_FALSE(recorder.Failed());
  return ReadBytes(recorder.path());
}

}  // namespace vllm
