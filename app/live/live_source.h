// LiveSource: everything that viewers of this process can see, from three threads: the engine's snapshots, the
// progress of a batch, which the main thread sets, and the process itself. LiveCollector makes frames of it. Owned by
// LivePublisher; any thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "app/live/live_frame.h"
#include "engine/core/engine_monitor.h"
#include "engine/frontend/llm_engine.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

class LiveSource {
 public:
  // Borrows the engine, whose client must have a monitor. `tokenizer` may be null.
  LiveSource(std::string command, std::string model, LLMEngine& engine,
             std::shared_ptr<const tokenizer::Tokenizer> tokenizer);

  EngineMonitor& monitor() const { return monitor_; }
  const tokenizer::Tokenizer* tokenizer() const { return tokenizer_.get(); }

  void SetBatch(LiveBatch batch);
  std::optional<LiveBatch> batch() const;
  // Returns the process with its current memory and uptime.
  LiveProcess process() const;

 private:
  EngineMonitor& monitor_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  LiveProcess process_;
  std::chrono::steady_clock::time_point start_;
  mutable std::mutex mutex_;
  std::optional<LiveBatch> batch_;
};

// Makes frames of a LiveSource. It keeps the decoded prompts of the last frame. Owned by a viewer or a server; one
// thread.
class LiveCollector {
 public:
  explicit LiveCollector(const LiveSource& source) : source_(source) {}

  // Returns a frame with the last snapshot, and with the text of the request `detail` (0: none). Returns nullopt before
  // the first snapshot.
  std::optional<LiveFrame> Collect(RequestId detail);

 private:
  const std::string& PromptOf(const RequestSnapshot& request);

  const LiveSource& source_;
  std::unordered_map<RequestId, std::string> prompts_;
};

}  // namespace vllm::app
