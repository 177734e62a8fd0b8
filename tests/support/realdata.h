// Where tests find the shared real data, and JSON files from it. Tests skip, and say so, where it is not there.
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
