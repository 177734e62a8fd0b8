#include "engine/executor/measured_calibration.h"

#include <sched.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/config/errors.h"
#include "engine/layers/communicator.h"
#include "engine/layers/linear/calibration_run.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/model_loader/packed_cache/packed_key.h"
#include "engine/model_loader/weight_memory.h"
#include "engine/worker/logits_buffer.h"
#include "engine/worker/worker.h"
#include "kernels/threading/available_memory.h"
#include "kernels/threading/cpu_topology.h"

namespace vllm {

namespace {

// Increment it when the same text gives other codes.
constexpr char kVersion[] = "2";
constexpr int64_t kBlockSizeUnit = 16;
// A step of a small model may always take this much memory.
constexpr int64_t kStepBytes = int64_t{4} << 30;
// Rows of hidden_size floats that a step holds for each token: the residual stream, the outputs of norms and blocks,
// and copies of rows for experts. An estimate, which must not depend on the machine: the result would.
constexpr int64_t kHiddenRows = 5;

using Chunks = std::vector<std::vector<int32_t>>;

int64_t LongestChunk(const Chunks& chunks) {
  size_t longest = 1;
  for (const std::vector<int32_t>& chunk : chunks) longest = std::max(longest, chunk.size());
  return static_cast<int64_t>(longest);
}

int64_t NumTokens(const Chunks& chunks) {
  int64_t count = 0;
  for (const std::vector<int32_t>& chunk : chunks) count += std::ssize(chunk);
  return count;
}

// Returns the configuration of the model that reads the chunks. Its step buffers are large enough for all of them, but
// memory is used only for the rows of the step.
VllmConfig ReaderConfig(const VllmConfig& config, const Chunks& chunks, int64_t max_chunk_tokens) {
  VllmConfig reader = config;
  // One block of the KV cache holds a chunk.
  reader.cache.block_size = (max_chunk_tokens + kBlockSizeUnit - 1) / kBlockSizeUnit * kBlockSizeUnit;
  reader.scheduler.max_num_batched_tokens = 2 * NumTokens(chunks);
  reader.scheduler.max_num_seqs = 2 * std::ssize(chunks);
  return reader;
}

// Returns less than a step of a dense model takes for each row. The system may refuse buffers that are larger than its
// memory even if most of their pages are never used.
int64_t LeastRowBytes(const ModelConfig& model) {
  const int64_t mlp = model.num_experts > 0 ? 0 : 2 * model.intermediate_size;
  return static_cast<int64_t>(sizeof(float)) * (kHiddenRows * model.hidden_size + mlp);
}

// Returns `count` of the chunks, at equal distances, or at least one and at most all.
Chunks TakeEvenly(Chunks chunks, int64_t count) {
  count = std::clamp<int64_t>(count, 1, std::ssize(chunks));
  Chunks taken;
  for (int64_t i = 0; i < count; ++i) {
    taken.push_back(std::move(chunks[static_cast<size_t>(std::ssize(chunks) * i / count)]));
  }
  return taken;
}

}  // namespace

CalibrationText TextOfChunks(std::vector<std::vector<int32_t>> chunks) {
  std::string ids;
  for (const std::vector<int32_t>& chunk : chunks) {
    for (const int32_t id : chunk) ids += std::to_string(id) + " ";
    ids += "\n";
  }
  CalibrationText text;
  text.description = std::to_string(chunks.size()) + " chunks " + HexDigest(ids);
  text.max_chunk_tokens = LongestChunk(chunks);
  text.chunks = [chunks = std::move(chunks)] { return chunks; };
  return text;
}

VllmConfig UnquantizedConfig(const VllmConfig& config) {
  VllmConfig unquantized = config;
  unquantized.model.quantization = {};
  unquantized.parallel.threads_per_rank = config.parallel.threads_per_rank * config.parallel.tensor_parallel_size;
  unquantized.parallel.tensor_parallel_size = 1;
  unquantized.parallel.data_parallel_size = 1;
  unquantized.parallel.data_parallel_rank = 0;
  // The packed-weight cache keeps the result under a key without the type of the KV cache.
  unquantized.cache.cache_dtype.reset();
  unquantized.load.packed_cache_directory.clear();
  unquantized.load.progress = nullptr;
  unquantized.load.matrices = nullptr;
  unquantized.kv_disk_cache = {};
  unquantized.speculative = {};
  unquantized.draft = nullptr;
  unquantized.lora = {};
  return unquantized;
}

MeasuredCalibration::MeasuredCalibration(const VllmConfig& config, CalibrationText text,
                                         std::shared_ptr<CalibrationProgress> progress)
    : config_(UnquantizedConfig(config)),
      text_(std::move(text)),
      cpus_(kernels::UsableCpus()),
      description_("version " + std::string(kVersion) + ", " + text_.description + ", blocks of " +
                   std::to_string(LayerMoments::kBlockColumns)),
      progress_(progress != nullptr ? std::move(progress) : std::make_shared<CalibrationProgress>()) {}

const CalibratedWeights& MeasuredCalibration::Weights() {
  std::call_once(is_read_, [this] {
    // The calling rank may be pinned to a CPU, which its new threads would inherit.
    std::thread thread([this] {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (const int cpu : cpus_) CPU_SET(static_cast<size_t>(cpu), &set);
      sched_setaffinity(0, sizeof(set), &set);
      try {
        ReadText();
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
    thread.join();
  });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return *weights_;
}

void MeasuredCalibration::ReadText() {
  const std::unique_ptr<WeightSource> weights = OpenWeights(config_);
  const int64_t limit = std::max(kStepBytes, weights->TotalBytes() / 2);
  Chunks chunks = text_.chunks();
  chunks = TakeEvenly(std::move(chunks), limit / (2 * LeastRowBytes(config_.model) * text_.max_chunk_tokens));
  const VllmConfig config = ReaderConfig(config_, chunks, text_.max_chunk_tokens);
  SingleRankCommunicator communicator;
  LogitsBuffer logits(config);
  CalibrationRun run(&progress_->num_layers_done);
  NewWeightMemory memory;
  Worker worker(config, *weights, memory, communicator, {}, logits, nullptr, nullptr, &run);
  const int64_t row_floats = kHiddenRows * config.model.hidden_size + run.widest_input() + run.widest_output();
  const int64_t chunk_bytes =
      static_cast<int64_t>(sizeof(float)) * row_floats * text_.max_chunk_tokens + worker.TextBytes();
  chunks = TakeEvenly(std::move(chunks), limit / (2 * chunk_bytes));
  const int64_t needed = 2 * chunk_bytes * std::ssize(chunks);
  if (kernels::ReadAvailableMemory(needed).bytes == 0) {
    const kernels::AvailableMemory available = kernels::ReadAvailableMemory();
    throw ResourceError("--calibration: out of memory (reading the text takes about " + std::to_string(needed) +
                        " bytes, and " + available.bound + " leaves " + std::to_string(available.bytes) + ")");
  }
  progress_->num_layers = run.num_layers();
  run.SetTokens(NumTokens(chunks));
  const auto num_chunks = static_cast<std::ptrdiff_t>(chunks.size());
  chunks.reserve(2 * chunks.size());
  std::copy_n(chunks.begin(), num_chunks, std::back_inserter(chunks));
  worker.ReadTexts(chunks);
  progress_->num_layers = 0;
  weights_ = run.TakeWeights();
}

}  // namespace vllm
