// MeasuredCalibration: the Calibration that reads a text with the unquantized model. The model runs on one rank with
// all threads of the engine, and is freed afterwards. Owned by the program; the ranks' threads call Moments.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/calibration/calibration.h"

namespace vllm {

// How much of the text has been read. Written by the thread that measures; any thread may read.
struct CalibrationProgress {
  std::atomic<int64_t> num_chunks{0};  // 0: nothing is being measured
  std::atomic<int64_t> num_chunks_read{0};
};

class MeasuredCalibration final : public Calibration {
 public:
  // The model reads each chunk on its own. `config` is that of the quantized model, after Finalize. Call on a thread
  // that may use all CPUs of the process. REQUIRES: the chunks have 1 to 1024 tokens and fewer than max_model_len.
  MeasuredCalibration(const VllmConfig& config, std::vector<std::vector<int32_t>> chunks,
                      std::shared_ptr<CalibrationProgress> progress = nullptr);

  const std::string& description() const override { return description_; }
  // Throws ModelError, ResourceError or std::bad_alloc. After that, each call throws the same.
  const ActivationMoments& Moments() override;
  // Frees the moments. REQUIRES: all ranks have loaded; Moments is not called again.
  void Release() { moments_.reset(); }

 private:
  void Measure();

  VllmConfig config_;  // of the unquantized model
  std::vector<std::vector<int32_t>> chunks_;
  std::vector<int> cpus_;  // that the constructor's thread may use
  std::string description_;
  std::shared_ptr<CalibrationProgress> progress_;
  std::once_flag measured_;
  std::exception_ptr failure_;
  std::optional<ActivationMoments> moments_;
};

}  // namespace vllm
