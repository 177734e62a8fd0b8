// TestModels() returns the sorted paths of the models in tests/data/models (every family), tests/data/quant/models
// (every quantization scheme) and tests/data/gguf (every block type), except split GGUF models. Any thread.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace vllm::testing_support {

inline std::vector<std::string> TestModels() {
  std::vector<std::string> paths;
  for (const char* parent : {"models", "quant/models", "gguf"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::string(VLLMCLI_TEST_DATA) + "/" + parent)) {
      for (const char* name : {"config.json", "model.gguf"}) {
        if (!std::filesystem::exists(entry.path() / name)) continue;
        paths.push_back(name == std::string("config.json") ? entry.path() : entry.path() / name);
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace vllm::testing_support
