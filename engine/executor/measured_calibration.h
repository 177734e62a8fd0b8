// MeasuredCalibration: the Calibration that quantizes the unquantized model while it reads a text (CalibrationRun). The
// model runs on one rank with all threads of the engine, and is freed afterwards. Owned by the program; the ranks'
// threads call Weights.
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

// How much of the text has been written, if the model writes it, and how many layers have been quantized. Set by the
// thread that reads the text; any thread may read.
struct CalibrationProgress {
  std::atomic<int64_t> num_tokens{0};  // to write; 0: the text is not written, or not yet
  std::atomic<int64_t> num_tokens_written{0};
  std::atomic<int64_t> num_layers{0};  // linear layers, whose matrices may be stacked; 0: the text is not being read
  std::atomic<int64_t> num_layers_done{0};
};

// The text that is read.
struct CalibrationText {
  std::string description;       // identifies the tokens
  int64_t max_chunk_tokens = 0;  // 1 to 1024, and less than max_model_len
  // Returns the chunks, each of 1 to max_chunk_tokens tokens. Called at most once, on the thread that reads them.
  // May throw what Weights throws.
  std::function<std::vector<std::vector<int32_t>>()> chunks;
};

// Returns a text of these chunks.
CalibrationText TextOfChunks(std::vector<std::vector<int32_t>> chunks);

// Returns the configuration of the same model without quantization, on one rank with all threads of `config`. It has no
// caches on disk, speculation or adapters. REQUIRES: config.Finalize() has been called.
VllmConfig UnquantizedConfig(const VllmConfig& config);

class MeasuredCalibration final : public Calibration {
 public:
  // The model reads each chunk on its own, but all in one step. If the step would take more than 4 GiB and half of the
  // size of the checkpoint, it reads fewer chunks, at equal distances. `config` is that of the quantized model, after
  // Finalize. Call on a thread that may use all CPUs of the process.
  MeasuredCalibration(const VllmConfig& config, CalibrationText text,
                      std::shared_ptr<CalibrationProgress> progress = nullptr);

  const std::string& description() const override { return description_; }
  // Throws ModelError, ResourceError or std::bad_alloc. After that, each call throws the same.
  const CalibratedWeights& Weights() override;
  // Frees the weights. REQUIRES: all ranks have loaded; Weights is not called again.
  void Release() { weights_.reset(); }

 private:
  void ReadText();

  VllmConfig config_;  // of the unquantized model
  CalibrationText text_;
  std::vector<int> cpus_;  // that the constructor's thread may use
  std::string description_;
  std::shared_ptr<CalibrationProgress> progress_;
  std::once_flag is_read_;
  std::exception_ptr failure_;
  std::optional<CalibratedWeights> weights_;
};

}  // namespace vllm
