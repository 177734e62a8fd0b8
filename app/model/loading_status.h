// LoadingStatus: shows "loading NAME, 40 %, 3 s" on a terminal while the main thread waits for the engine. Owned by
// LoadModel. Its own thread draws the line. The destructor stops the thread and erases the line, so that the caller may
// print.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/config/vllm_config.h"

namespace vllm::app {

class LoadingStatus {
 public:
  LoadingStatus(std::string name, std::shared_ptr<const LoadProgress> progress);
  ~LoadingStatus();
  LoadingStatus(const LoadingStatus&) = delete;
  LoadingStatus& operator=(const LoadingStatus&) = delete;

 private:
  void Draw();

  std::string name_;
  std::shared_ptr<const LoadProgress> progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace vllm::app
