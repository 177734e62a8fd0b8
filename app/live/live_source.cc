#include "app/live/live_source.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxIdBytes = 128;
constexpr size_t kMaxPromptBytes = 240;
constexpr size_t kMaxErrorBytes = 400;

// Returns the first bytes of `text`, without half a character.
std::string First(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  while (max_bytes > 0 && tokenizer::IsUtf8Continuation(text[max_bytes])) --max_bytes;
  return std::string(text.substr(0, max_bytes));
}

std::string Last(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  size_t begin = text.size() - max_bytes;
  while (begin < text.size() && tokenizer::IsUtf8Continuation(text[begin])) ++begin;
  return std::string(text.substr(begin));
}

// Replaces line breaks by spaces and removes spaces around them, so that the text fits into a table.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (is_space && (line.empty() || line.back() == ' ')) continue;
    line += is_space ? ' ' : c;
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

int64_t ResidentBytes() {
  FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long long size = 0;
  long long resident = 0;
  const int num_read = std::fscanf(file, "%lld %lld", &size, &resident);
  std::fclose(file);
  return num_read == 2 ? resident * sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace

LiveSource::LiveSource(std::string command, std::string model, LLMEngine& engine,
                       std::shared_ptr<const tokenizer::Tokenizer> tokenizer)
    : monitor_(*engine.client().monitor()), tokenizer_(std::move(tokenizer)), start_(std::chrono::steady_clock::now()) {
  const VllmConfig& config = engine.config();
  process_.pid = getpid();
  process_.command = std::move(command);
  process_.model = First(model, kMaxPromptBytes);
  process_.dtype = ToString(config.model.dtype);
  process_.tensor_parallel_size = config.parallel.tensor_parallel_size;
  process_.data_parallel_size = config.parallel.data_parallel_size;
  process_.threads_per_rank = config.parallel.threads_per_rank;
  process_.max_model_len = engine.max_model_len();
}

void LiveSource::SetBatch(LiveBatch batch) {
  for (LiveError& error : batch.errors) error.message = First(error.message, kMaxErrorBytes);
  const std::lock_guard lock(mutex_);
  batch_ = std::move(batch);
}

std::optional<LiveBatch> LiveSource::batch() const {
  const std::lock_guard lock(mutex_);
  return batch_;
}

LiveProcess LiveSource::process() const {
  LiveProcess process = process_;
  process.rss_bytes = ResidentBytes();
  process.uptime = std::chrono::steady_clock::now() - start_;
  return process;
}

const std::string& LiveCollector::PromptOf(const RequestSnapshot& request) {
  const auto [found, is_new] = prompts_.try_emplace(request.request_id);
  if (is_new && source_.tokenizer() != nullptr) {
    const std::string text = source_.tokenizer()->Decode(request.last_prompt_token_ids, /*skip_special_tokens=*/true);
    found->second = Last(OneLine(text), kMaxPromptBytes);
  }
  return found->second;
}

std::optional<LiveFrame> LiveCollector::Collect(RequestId detail) {
  const std::shared_ptr<const EngineSnapshot> snapshot = source_.monitor().Latest();
  if (snapshot == nullptr) return std::nullopt;
  LiveFrame frame;
  frame.process = source_.process();
  frame.engine = *snapshot;
  frame.engine.scheduler.num_waiting_reqs += source_.monitor().num_held_reqs();
  frame.batch = source_.batch();
  std::unordered_map<RequestId, std::string> kept;
  for (RequestSnapshot& request : frame.engine.requests) {
    frame.prompts.push_back(PromptOf(request));
    kept.emplace(request.request_id, frame.prompts.back());
    if (request.request_id == detail && source_.tokenizer() != nullptr) {
      frame.detail = {detail, source_.tokenizer()->Decode(request.last_prompt_token_ids, /*skip_special_tokens=*/false),
                      source_.tokenizer()->Decode(request.last_output_token_ids, /*skip_special_tokens=*/false)};
    }
    request.external_req_id = First(request.external_req_id, kMaxIdBytes);
    request.last_prompt_token_ids.clear();
    request.last_output_token_ids.clear();
  }
  prompts_ = std::move(kept);
  return frame;
}

}  // namespace vllm::app
