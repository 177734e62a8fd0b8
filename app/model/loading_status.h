// LoadingStatus: shows a line such as "loading NAME, 40 %, 3 s" on a terminal while the main thread waits for the
// engine, also while a text is written or read for --calibration. Owned by LoadModel. Its own thread draws the line.
// The destructor stops the thread and erases the line, so that the caller may print.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/config/vllm_config.h"
#include "engine/executor/measured_calibration.h"

namespace vllm::app {

class LoadingStatus {
 public:
  // `calibration` may be null.
  LoadingStatus(std::string name, std::shared_ptr<const LoadProgress> progress,
                std::shared_ptr<const CalibrationProgress> calibration = nullptr);
  ~LoadingStatus();
  LoadingStatus(const LoadingStatus&) = delete;
  LoadingStatus& operator=(const LoadingStatus&) = delete;

 private:
  void Draw();
  std::string Text() const;

  std::string name_;
  std::shared_ptr<const LoadProgress> progress_;
  std::shared_ptr<const CalibrationProgress> calibration_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace vllm::app
