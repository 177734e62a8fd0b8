// TraceRecorder: writes a scheduler trace (trace_format.h). EngineCore calls it after each input and each decision of
// its Scheduler; without --trace, EngineCore has no recorder. Owned by the caller that created the EngineCoreClient,
// and outlives it. The engine thread calls all members, except that any thread may create it and call failure().
//
// Every step is written to the file before it runs, so a process that crashes leaves a trace up to the step in which it
// crashed. A failure, for example of a full disk, ends the trace with its last whole record, never the engine: no
// member but the constructor throws. A request with beam search is such a failure, because the beams depend on
// logprobs, which a trace does not contain. Once its buffers have grown, a decode step allocates nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/request/engine_core_outputs.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/request.h"
#include "engine/sched/scheduler_output.h"
#include "engine/trace/sip_hash.h"
#include "engine/trace/trace_format.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {

class TraceRecorder {
 public:
  // Creates `path` with mode 0600 and locks it. An empty regular file is used; it also gets mode 0600. Throws
  // ConfigError if the file is not empty, is not a regular file, is a symbolic link, or another process traces to it,
  // and ResourceError if it cannot be created.
  explicit TraceRecorder(const std::string& path);
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  const std::string& path() const { return path_; }

  // Writes the header and the configuration. Call this first, with the scheduler's arguments.
  void Begin(const SchedulerConfig& scheduler, const CacheConfig& cache, int64_t max_model_len) noexcept;
  // Scheduler::AddRequest has returned `accepted`.
  void Add(const EngineCoreRequest& request, bool accepted) noexcept;
  // Scheduler::FinishRequests has ended these requests. Ignores unknown ids.
  void Finish(std::span<const RequestId> request_ids, FinishReason reason) noexcept;
  void ResetPrefixCache(bool ok) noexcept;
  void SetAdmissionPaused(bool paused) noexcept;
  // Scheduler::Schedule has returned this step, after which num_blocks_in_use blocks were in use.
  void Step(const SchedulerOutput& step, int64_t num_blocks_in_use) noexcept;
  // Scheduler::UpdateFromOutput has filled `outputs`, which was empty before.
  void Update(const EngineCoreOutputs& outputs) noexcept;
  // The drafts that the running requests have now.
  void Drafts(std::span<Request* const> running) noexcept;
  void RollBack() noexcept;
  // Writes the buffered records. Call this when no further step follows soon.
  void Flush() noexcept;
  // The engine shuts down normally.
  void End() noexcept;

  // Returns true once the trace has ended because of a failure; `reason` may be null. Any thread.
  bool Failed(std::string* reason = nullptr) const;

 private:
  // The state from which the tags of a request's next blocks are computed.
  struct Sequence {
    uint64_t parent_tag = 0;
    std::vector<int32_t> partial_block;
    int64_t num_accepted_drafts = 0;
  };

  // Runs `record`, which fills record_ and may append it. An exception ends the trace.
  template <typename F>
  void Guard(F&& record) noexcept;
  void Append();
  void Fail(int error_number) noexcept;  // or one of the constants below
  // Appends a token to the sequence. Appends the tag of the block to `tags` if the token completes one.
  void PushToken(Sequence& sequence, int32_t token_id, std::vector<uint64_t>& tags);
  // Returns the time since `since` in microseconds.
  static int64_t ElapsedUs(SteadyTime since, SteadyTime now);

  static constexpr int kBeamSearch = -1;
  static constexpr int kLoRA = -2;
  static constexpr int kPooling = -3;

  const std::string path_;
  tokenizer::UniqueFd fd_;
  SipKey key_;
  size_t block_size_ = 0;
  bool has_tags_ = false;
  SteadyTime start_;
  SteadyTime step_time_;
  std::unordered_map<RequestId, Sequence> sequences_;

  TraceRecord record_;
  std::string payload_;
  std::string buffer_;  // whole records that are not yet written
  int64_t num_bytes_written_ = 0;
  std::atomic<int> failure_{0};  // an errno value, or one of the constants above
};

}  // namespace vllm
