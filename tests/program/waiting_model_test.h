// WaitingModelTest: runs the variant of the program whose model waits at a FIFO until the test releases it, so that the
// test can act while the program is busy. Its functions run on the test's thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {

class WaitingModelTest : public testing::Test {
 protected:
  void SetUp() override {
    model_ = CopyGuideModel(temp_.path() + "/slow", {.architecture = "FaultyForCausalLM"});
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    for (const char* name : {"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"}) environment_[name] = temp_.path();
  }

  // Makes the model wait before it is built.
  void WaitAtLoad() { environment_["WAIT_LOAD"] = fifo_; }
  // Makes the model wait at the start of this call of Forward. Call 0 is the profiling run.
  void WaitAtCall(int call) {
    environment_["WAIT_FORWARD"] = fifo_;
    environment_["WAIT_CALL"] = std::to_string(call);
  }
  // Lets the model continue. Blocks until the model waits.
  void Release() const { close(open(fifo_.c_str(), O_WRONLY | O_CLOEXEC)); }

  TempDirectory temp_;
  std::string fifo_ = temp_.path() + "/fifo";
  std::string model_;
  std::map<std::string, std::string> environment_;
};

}  // namespace vllm::app
