#include "engine/executor/measured_calibration.h"

#include <sched.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/layers/communicator.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/model_loader/packed_cache/packed_key.h"
#include "engine/worker/logits_buffer.h"
#include "engine/worker/worker.h"
#include "kernels/threading/cpu_topology.h"

namespace vllm {

namespace {

// Increment it when the same text gives other codes.
constexpr char kVersion[] = "1";
constexpr int64_t kBlockSizeUnit = 16;

// Returns the configuration of the model that reads the chunks.
VllmConfig ReaderConfig(const VllmConfig& config, int64_t max_tokens) {
  VllmConfig reader = UnquantizedConfig(config);
  // A chunk is read in one step, and one block of the KV cache holds it.
  reader.cache.block_size = (max_tokens + kBlockSizeUnit - 1) / kBlockSizeUnit * kBlockSizeUnit;
  reader.scheduler.max_num_batched_tokens = reader.cache.block_size;
  reader.scheduler.max_num_seqs = 1;
  return reader;
}

int64_t LongestChunk(const std::vector<std::vector<int32_t>>& chunks) {
  size_t longest = 1;
  for (const std::vector<int32_t>& chunk : chunks) longest = std::max(longest, chunk.size());
  return static_cast<int64_t>(longest);
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
  unquantized.load.shared_weights = nullptr;
  unquantized.kv_disk_cache = {};
  unquantized.speculative = {};
  unquantized.draft = nullptr;
  unquantized.lora = {};
  return unquantized;
}

MeasuredCalibration::MeasuredCalibration(const VllmConfig& config, CalibrationText text,
                                         std::shared_ptr<CalibrationProgress> progress)
    : config_(ReaderConfig(config, text.max_chunk_tokens)),
      text_(std::move(text)),
      cpus_(kernels::UsableCpus()),
      description_("version " + std::string(kVersion) + ", " + text_.description + ", blocks of " +
                   std::to_string(LayerMoments::kBlockColumns)),
      progress_(progress != nullptr ? std::move(progress) : std::make_shared<CalibrationProgress>()) {}

const ActivationMoments& MeasuredCalibration::Moments() {
  std::call_once(measured_, [this] {
    // The calling rank may be pinned to a CPU, which its new threads would inherit.
    std::thread thread([this] {
      cpu_set_t set;
      CPU_ZERO(&set);
      for (const int cpu : cpus_) CPU_SET(static_cast<size_t>(cpu), &set);
      sched_setaffinity(0, sizeof(set), &set);
      try {
        Measure();
      } catch (...) {
        failure_ = std::current_exception();
      }
    });
    thread.join();
  });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  return *moments_;
}

void MeasuredCalibration::Measure() {
  const std::vector<std::vector<int32_t>> chunks = text_.chunks();
  progress_->num_chunks = static_cast<int64_t>(chunks.size());
  const std::unique_ptr<WeightSource> weights = OpenWeights(config_);
  SingleRankCommunicator communicator;
  LogitsBuffer logits(config_);
  ActivationMoments moments;
  Worker worker(config_, *weights, communicator, {}, logits, nullptr, nullptr, &moments);
  for (const std::vector<int32_t>& chunk : chunks) {
    worker.ReadTokens(chunk);
    ++progress_->num_chunks_read;
  }
  moments_ = std::move(moments);
}

}  // namespace vllm
