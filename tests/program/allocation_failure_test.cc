// The program with one allocation that fails: every time it ends with exit status 4 or with a failed request and its
// cause, or it does without and gives the same output. It never crashes and never hangs. By default a sample of the
// allocations is tried; VLLMCLI_ALLOCATIONS=all tries each of them.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/program/program.h"

namespace vllm {
namespace {

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
  const size_t at = good.err.find(name);
  ASSERT_NE(at, std::string::npos) << good.err;
  const uint64_t count = std::strtoull(good.err.c_str() + at + name.size(), nullptr, 10);
  ASSERT_GT(count, 1000u);
  const char* how_many = std::getenv("VLLMCLI_ALLOCATIONS");
  const uint64_t step = how_many != nullptr && std::string(how_many) == "all" ? 1 : count / 150;
  int num_resource = 0;
  for (uint64_t number = 1; number <= count; number += step) {
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

TEST(AllocationFailureTest, AnyAllocationOfALoadAndTwentyStepsMayFail) { TryEachAllocation(kWords); }

TEST(AllocationFailureTest, AnyAllocationOfTwoRanksMayFail) {
  std::vector<std::string> words = kWords;
  for (const char* word : {"-tp", "2", "--threads-per-rank", "2"}) words.push_back(word);
  TryEachAllocation(words);
}

}  // namespace
}  // namespace vllm
