// Runs the program with one failing allocation. The program must either print the same output as without the failure,
// or print the cause and exit with status 4 (1 if the request failed). It must never crash or hang. By default the
// tests try a sample of the allocations, and each of the last ones, during which threads start and end. With
// VLLMCLI_ALLOCATIONS=all they try each one.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

// A run with a sanitizer is so slow that a test has time for only a few.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSampleSize = 25;
constexpr uint64_t kNumLast = 25;
#else
constexpr uint64_t kSampleSize = 150;
constexpr uint64_t kNumLast = 250;
#endif

const std::vector<std::string> kWords = {"complete", "Once upon a time", "--max-tokens",        "20", "--temperature",
                                         "0",        "--ignore-eos",     "--packed-cache-size", "0"};

ProgramResult RunWith(const std::string& variable, const std::string& value, const std::vector<std::string>& words) {
  ProgramOptions options;
  options.program = VLLMCLI_FAILING_NEW_BINARY;
  options.environment[variable] = value;
  return RunProgram(words, options);
}

void TryEachAllocation(const std::vector<std::string>& words) {
  const ProgramResult good = RunWith("COUNT_ALLOCATIONS", "1", words);
  ASSERT_EQ(good.status, 0) << good.err;
  const std::string name = "allocations: ";
  const size_t pos = good.err.find(name);
  ASSERT_NE(pos, std::string::npos) << good.err;
  const uint64_t count = std::strtoull(good.err.c_str() + pos + name.size(), nullptr, 10);
  ASSERT_GT(count, 1000u);
  const char* mode = std::getenv("VLLMCLI_ALLOCATIONS");
  const uint64_t step = mode != nullptr && std::string(mode) == "all" ? 1 : count / kSampleSize;
  int num_resource = 0;
  for (uint64_t number = 1; number <= count; number += number + kNumLast < count ? step : 1) {
    const ProgramResult result = RunWith("FAIL_ALLOCATION", std::to_string(number), words);
    const std::string what = "allocation " + std::to_string(number) + " of " + std::to_string(count) +
                             ", exit status " + std::to_string(result.status) + ": " + result.err;
    if (result.status == 0) {
      EXPECT_EQ(result.out, good.out) << what;
      continue;
    }
    EXPECT_TRUE(result.status == 4 || result.status == 1) << what;
    const bool says_why = result.err.find("out of memory") != std::string::npos ||
                          result.err.find("Cannot allocate memory") != std::string::npos;
    EXPECT_TRUE(says_why) << what;
    num_resource += result.status == 4;
  }
  EXPECT_GT(num_resource, 10);
}

TEST(AllocationFailureTest, AnyAllocationMayFailWhileLoadingAndGenerating) { TryEachAllocation(kWords); }

TEST(AllocationFailureTest, AnyAllocationMayFailWithTwoRanks) {
  std::vector<std::string> words = kWords;
  for (const char* word : {"-tp", "2", "--threads-per-rank", "2"}) words.push_back(word);
  TryEachAllocation(words);
}

TEST(AllocationFailureTest, AnyAllocationMayFailWithTwoEngines) {
  std::vector<std::string> words = kWords;
  for (const char* word : {"-dp", "2", "--n", "3", "--temperature", "1", "--seed", "5"}) words.push_back(word);
  TryEachAllocation(words);
}

}  // namespace
}  // namespace vllm::app
