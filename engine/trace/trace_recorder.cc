#include "engine/trace/trace_recorder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "engine/config/errors.h"
#include "engine/trace/trace_decisions.h"

namespace vllm {
namespace {

tokenizer::UniqueFd CreateFile(const std::string& path) {
  const auto fail = [&path](const std::string& why) { throw ConfigError("--trace " + path + ": " + why); };
  // O_NONBLOCK: do not wait for the reader of a FIFO.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  tokenizer::UniqueFd fd(open(path.c_str(), flags, 0600));
  if (!fd.valid()) {
    const int error = errno;
    if (error == ELOOP) fail("is a symbolic link");
    if (error == EISDIR) fail("is a directory");
    throw ResourceError("cannot create the trace " + path + ": " + std::strerror(error));
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) throw ResourceError("--trace " + path + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail("is " + tokenizer::FileTypeName(status.st_mode) + ", not a regular file");
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) fail("another process is writing to it");
  // Read the size again: another process may have written to the file before the lock was taken.
  if (fstat(fd.get(), &status) != 0 || status.st_size > 0) fail("exists and is not empty; choose another file");
  if ((status.st_mode & 07777u) != 0600 && fchmod(fd.get(), 0600) != 0) {
    throw ResourceError("--trace " + path + ": cannot make it private: " + std::strerror(errno));
  }
  return fd;
}

}  // namespace

TraceRecorder::TraceRecorder(const std::string& path) : path_(path), fd_(CreateFile(path)) {
  if (getrandom(&key_, sizeof(key_), 0) != static_cast<ssize_t>(sizeof(key_))) {
    throw ResourceError("--trace " + path + ": no random numbers: " + std::strerror(errno));
  }
}

template <typename F>
void TraceRecorder::Guard(F&& record) noexcept {
  if (failure_.load(std::memory_order_relaxed) != 0) return;
  try {
    record();
  } catch (const std::bad_alloc&) {
    Fail(ENOMEM);
  } catch (...) {
    Fail(EIO);
  }
}

void TraceRecorder::Begin(const SchedulerConfig& scheduler, const CacheConfig& cache, int64_t max_model_len) noexcept {
  Guard([&] {
    start_ = step_time_ = std::chrono::steady_clock::now();
    block_size_ = static_cast<size_t>(cache.block_size);
    has_tags_ = cache.enable_prefix_caching;
    buffer_ = std::string(kTraceMagic) + std::to_string(kTraceVersion) + "\n";
    record_.type = TraceRecordType::kBegin;
    record_.begin = {VLLMCLI_VERSION, scheduler, cache, max_model_len};
    Append();
    Flush();
  });
}

void TraceRecorder::PushToken(Sequence& sequence, int32_t token_id, std::vector<uint64_t>& tags) {
  sequence.partial_block.push_back(token_id);
  if (sequence.partial_block.size() < block_size_) return;
  // The previous tag stands in front of the tokens, so that one call hashes both.
  payload_.assign(reinterpret_cast<const char*>(&sequence.parent_tag), sizeof(sequence.parent_tag));
  payload_.append(reinterpret_cast<const char*>(sequence.partial_block.data()),
                  sequence.partial_block.size() * sizeof(int32_t));
  sequence.parent_tag = SipHash(key_, payload_);
  tags.push_back(sequence.parent_tag);
  sequence.partial_block.clear();
}

void TraceRecorder::Add(const EngineCoreRequest& request, bool accepted) noexcept {
  Guard([&] {
    const SamplingParams& params = request.sampling_params;
    if (params.use_beam_search) {
      Flush();
      return Fail(kBeamSearch);
    }
    if (request.lora_slot >= 0) {
      Flush();
      return Fail(kLoRA);
    }
    if (request.pooling_params) {
      Flush();
      return Fail(kPooling);
    }
    record_.type = TraceRecordType::kAdd;
    TraceAdd& add = record_.add;
    add.request_id = request.request_id;
    add.num_prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
    add.num_prior_output_tokens = static_cast<int64_t>(request.prior_output_token_ids.size());
    add.max_tokens_plus_one = params.max_tokens ? *params.max_tokens + 1 : 0;
    add.min_tokens = params.min_tokens;
    add.priority = request.priority;
    add.arrival_ns = std::chrono::nanoseconds(request.arrival_time - start_).count();
    add.accepted = accepted;
    add.prompt_logprobs = params.prompt_logprobs.has_value();
    add.skip_reading_prefix_cache = params.skip_reading_prefix_cache;
    add.interactive = request.interactive;
    add.tags.clear();
    if (has_tags_) {
      Sequence sequence;
      sequence.partial_block.reserve(block_size_);
      // The first block's predecessor is the salt, or 0.
      if (!request.cache_salt.empty()) sequence.parent_tag = SipHash(key_, "salt" + request.cache_salt);
      for (const int32_t id : request.prompt_token_ids) PushToken(sequence, id, add.tags);
      for (const int32_t id : request.prior_output_token_ids) PushToken(sequence, id, add.tags);
      if (accepted) sequences_.insert_or_assign(request.request_id, std::move(sequence));
    } else if (accepted) {
      sequences_[request.request_id];
    }
    Append();
  });
}

void TraceRecorder::Finish(std::span<const RequestId> request_ids, FinishReason reason) noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kFinish;
    record_.finish.reason = reason;
    record_.finish.request_ids.clear();
    for (const RequestId id : request_ids) {
      if (sequences_.erase(id) > 0) record_.finish.request_ids.push_back(id);
    }
    if (!record_.finish.request_ids.empty()) Append();
  });
}

void TraceRecorder::ResetPrefixCache(bool ok) noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kReset;
    record_.reset_ok = ok;
    Append();
  });
}

void TraceRecorder::SetAdmissionPaused(bool paused) noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kPause;
    record_.paused = paused;
    Append();
  });
}

void TraceRecorder::Step(const SchedulerOutput& step, int64_t num_blocks_in_use) noexcept {
  Guard([&] {
    const SteadyTime now = std::chrono::steady_clock::now();
    record_.type = TraceRecordType::kStep;
    SetTraceStep(step, num_blocks_in_use, record_.step);
    record_.step.elapsed_us = ElapsedUs(step_time_, now);
    step_time_ = now;
    Append();
    Flush();
  });
}

void TraceRecorder::Update(const EngineCoreOutputs& outputs) noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kUpdate;
    TraceUpdate& update = record_.update;
    update.elapsed_us = ElapsedUs(step_time_, std::chrono::steady_clock::now());
    update.sampled.clear();
    update.tags.clear();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const EngineCoreOutput& output = outputs[i];
      TraceSampled& sampled = update.sampled.emplace_back();
      sampled.request_id = output.request_id;
      sampled.num_tokens = static_cast<int64_t>(output.new_token_ids.size());
      sampled.end = SampledEndOf(output);
      const auto it = sequences_.find(output.request_id);
      if (it == sequences_.end()) continue;
      sampled.num_accepted_drafts = output.num_accepted_draft_tokens -
                                    std::exchange(it->second.num_accepted_drafts, output.num_accepted_draft_tokens);
      if (has_tags_) {
        const size_t num_tags = update.tags.size();
        for (const int32_t id : output.new_token_ids) PushToken(it->second, id, update.tags);
        sampled.num_tags = static_cast<int64_t>(update.tags.size() - num_tags);
      }
      if (sampled.end != SampledEnd::kContinues) sequences_.erase(it);
    }
    Append();
  });
}

void TraceRecorder::Drafts(std::span<Request* const> running) noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kDrafts;
    record_.drafts.clear();
    for (const Request* request : running) {
      if (request->spec_token_ids.empty()) continue;
      record_.drafts.push_back({request->id(), static_cast<int64_t>(request->spec_token_ids.size())});
    }
    if (!record_.drafts.empty()) Append();
  });
}

void TraceRecorder::RollBack() noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kRollBack;
    record_.rollback_elapsed_us = ElapsedUs(step_time_, std::chrono::steady_clock::now());
    Append();
  });
}

void TraceRecorder::End() noexcept {
  Guard([&] {
    record_.type = TraceRecordType::kEnd;
    Append();
    Flush();
  });
}

void TraceRecorder::Append() {
  if (!AppendTraceRecord(record_, payload_, buffer_)) Fail(EMSGSIZE);
}

void TraceRecorder::Flush() noexcept {
  if (failure_.load(std::memory_order_relaxed) != 0) return;
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t count = write(fd_.get(), buffer_.data() + done, buffer_.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Fail(count == 0 ? EIO : errno);
    done += static_cast<size_t>(count);
  }
  num_bytes_written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void TraceRecorder::Fail(int error_number) noexcept {
  // Remove the part of a record that was written. If that fails, the reader reports the torn end.
  [[maybe_unused]] const int result = ftruncate(fd_.get(), num_bytes_written_);
  buffer_.clear();
  failure_.store(error_number);
}

bool TraceRecorder::Failed(std::string* reason) const {
  const int error_number = failure_.load();
  if (error_number != 0 && reason != nullptr) {
    *reason = error_number == kBeamSearch ? "a trace cannot contain beam search"
              : error_number == kLoRA     ? "a trace cannot contain requests with LoRA adapters"
              : error_number == kPooling  ? "a trace cannot contain requests for vectors or scores"
                                          : std::strerror(error_number);
  }
  return error_number != 0;
}

int64_t TraceRecorder::ElapsedUs(SteadyTime since, SteadyTime now) {
  const auto elapsed = std::chrono::duration_cast<std::chrono::microseconds>(now - since);
  return std::clamp<int64_t>(elapsed.count(), 0, kMaxElapsedUs);
}

}  // namespace vllm
