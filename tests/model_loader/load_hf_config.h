// Reads a config.json that a test has made.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/config/errors.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tests/support/temp_directory.h"

namespace vllm::testing_support {

// Throws as LoadModelConfig does.
inline ModelConfig LoadHfConfig(const nlohmann::json& config) {
  const TempDirectory directory;
  directory.Write("config.json", config.dump());
  return LoadModelConfig(directory.path());
}

// Returns the message of the ModelError with which `config` is rejected.
inline std::string HfConfigError(const nlohmann::json& config) {
  return MessageOf<ModelError>([&] { LoadHfConfig(config); });
}

// Checks that the message contains `part`.
inline void ExpectHfConfigError(const nlohmann::json& config, const std::string& part) {
  const std::string error = HfConfigError(config);
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

}  // namespace vllm::testing_support
