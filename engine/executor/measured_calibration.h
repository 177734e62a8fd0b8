// MeasuredCalibration: the Calibration that reads a text with the unquantized model. The model runs on one rank with
// all threads of the engine, and is freed afterwards. Owned by the program; the ranks' threads call Moments.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/calibration/calibration.h"

namespace vllm {

// How much of the text has been written, if the model writes it, and read. Set by the thread that measures; any thread
// may read.
struct CalibrationProgress {
  std::atomic<int64_t> num_tokens{0};  // to write; 0: the text is not written, or not yet
  std::atomic<int64_t> num_tokens_written{0};
  std::atomic<int64_t> num_chunks{0};  // 0: nothing is being read
  std::atomic<int64_t> num_chunks_read{0};
};

// The text that is read.
struct CalibrationText {
  std::string description;       // identifies the tokens
  int64_t max_chunk_tokens = 0;  // 1 to 1024, and less than max_model_len
  // Returns the chunks, each of 1 to max_chunk_tokens tokens. Called at most once, on the thread that measures. May
  // throw what Moments throws.
  std::function<std::vector<std::vector<int32_t>>()> chunks;
};

// Returns a text of these chunks.
CalibrationText TextOfChunks(std::vector<std::vector<int32_t>> chunks);

// Returns the configuration of the same model without quantization, on one rank with all threads of `config`. It has no
// caches on disk, speculation or adapters. REQUIRES: config.Finalize() has been called.
VllmConfig UnquantizedConfig(const VllmConfig& config);

class MeasuredCalibration final : public Calibration {
 public:
  // The model reads each chunk on its own. `config` is that of the quantized model, after Finalize. Call on a thread
  // that may use all CPUs of the process.
  MeasuredCalibration(const VllmConfig& config, CalibrationText text,
                      std::shared_ptr<CalibrationProgress> progress = nullptr);

  const std::string& description() const override { return description_; }
  // Throws ModelError, ResourceError or std::bad_alloc. After that, each call throws the same.
  const ActivationMoments& Moments() override;
  // Frees the moments. REQUIRES: all ranks have loaded; Moments is not called again.
  void Release() { moments_.reset(); }

 private:
  void Measure();

  VllmConfig config_;  // of the unquantized model
  CalibrationText text_;
  std::vector<int> cpus_;  // that the constructor's thread may use
  std::string description_;
  std::shared_ptr<CalibrationProgress> progress_;
  std::once_flag measured_;
  std::exception_ptr failure_;
  std::optional<ActivationMoments> moments_;
};

}  // namespace vllm
