#include "app/model/loading_status.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "app/output/duration_text.h"
#include "app/terminal/progress_line.h"
#include "engine/threading/block_signals.h"

namespace vllm::app {
namespace {

constexpr std::chrono::milliseconds kDelay{300};

}  // namespace

LoadingStatus::LoadingStatus(std::string name, std::shared_ptr<const LoadProgress> progress,
                             std::shared_ptr<const CalibrationProgress> calibration)
    : name_(std::move(name)), progress_(std::move(progress)), calibration_(std::move(calibration)) {
  const BlockSignals block_signals;
  try {
    thread_ = std::thread([this] { Draw(); });
  } catch (const std::system_error&) {
    // Loading continues without a status line.
  }
}

LoadingStatus::~LoadingStatus() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string LoadingStatus::Text() const {
  if (calibration_ != nullptr && calibration_->num_tokens_written < calibration_->num_tokens) {
    return "writing a text with " + name_ + " for its calibration, " +
           std::to_string(100 * calibration_->num_tokens_written / calibration_->num_tokens) + " %, ";
  }
  if (calibration_ != nullptr && calibration_->num_layers_done < calibration_->num_layers) {
    return "calibrating " + name_ + ", " +
           std::to_string(100 * calibration_->num_layers_done / calibration_->num_layers) + " %, ";
  }
  // Without the last percent: the KV cache and the step buffers come after the layers.
  const int64_t num_layers = progress_->num_layers;
  if (num_layers == 0) return "loading " + name_ + ", ";
  const int64_t percent = std::min<int64_t>(99, 100 * progress_->num_loaded_layers / num_layers);
  return "loading " + name_ + ", " + std::to_string(percent) + " %, ";
}

void LoadingStatus::Draw() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  if (changed_.wait_for(lock, kDelay, [this] { return done_; })) return;
  ProgressLine line;
  if (!line.enabled()) return;
  do {
    const auto elapsed = std::chrono::steady_clock::now() - start;
    line.Show(Text() + DurationText(std::chrono::duration_cast<std::chrono::milliseconds>(elapsed)));
  } while (!changed_.wait_for(lock, std::chrono::milliseconds(500), [this] { return done_; }));
}

}  // namespace vllm::app
