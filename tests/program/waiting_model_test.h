// WaitingModelTest: runs the variant of the program whose model waits at a FIFO until the test releases it, so that the
// test can act while the program is busy.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/program/program.h"

namespace vllm::app {

class WaitingModelTest : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_waiting_" + std::to_string(getpid()));
    fs::create_directories(directory_ / "slow");
    for (const char* name :
         {"tokenizer.json", "tokenizer_config.json", "model.safetensors", "generation_config.json"}) {
      fs::create_symlink(fs::path(GuideModel()) / name, directory_ / "slow" / name);
    }
    nlohmann::json config;
    std::ifstream(fs::path(GuideModel()) / "config.json") >> config;
    config["architectures"] = {"FaultyForCausalLM"};
    std::ofstream(directory_ / "slow" / "config.json") << config.dump();
    fifo_ = (directory_ / "fifo").string();
    ASSERT_EQ(mkfifo(fifo_.c_str(), 0600), 0);
    for (const char* name : {"XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"}) {
      environment_[name] = directory_.string();
    }
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Makes the model wait at the start of this call of Forward. Call 0 is the profiling run.
  void WaitAtCall(int call) {
    environment_["WAIT_FORWARD"] = fifo_;
    environment_["WAIT_CALL"] = std::to_string(call);
  }
  // Lets the model continue.
  void Release() const { close(open(fifo_.c_str(), O_WRONLY | O_CLOEXEC)); }
  std::string model() const { return (directory_ / "slow").string(); }

  std::filesystem::path directory_;
  std::string fifo_;
  std::map<std::string, std::string> environment_;
};

}  // namespace vllm::app
