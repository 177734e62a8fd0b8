// Finds the reference data that is too large for tests/data: trained models and reference outputs in the directory
// VLLMCLI_REALDATA. A test that needs a file from there skips itself with VLLMCLI_NEEDS_REALDATA if the file is
// missing.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace vllm::testing_support {

inline std::string RealData(const std::string& path) { return std::string(VLLMCLI_REALDATA) + "/" + path; }

inline bool HasRealData(const std::string& path) { return std::filesystem::exists(RealData(path)); }

inline nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

}  // namespace vllm::testing_support

#define VLLMCLI_NEEDS_REALDATA(path)                                                         \
  if (!::vllm::testing_support::HasRealData(path)) {                                         \
    GTEST_SKIP() << "reference data not found: " << ::vllm::testing_support::RealData(path); \
  }
