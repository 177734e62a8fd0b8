// Tests a chat whose context is full: most turns must still find more than half of their prompt in the prefix cache.
// Uses the bundled model.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

TEST(ChatContextTest, MostTurnsOfAFullContextFindHalfOfTheirPromptInThePrefixCache) {
  constexpr int kTurns = 30;
  std::string input;
  for (int i = 0; i < kTurns; ++i) input += "Tell me about flag number " + std::to_string(i) + ", please.\n";
  const ProgramResult chat = RunProgram(
      {"chat", "-m", GuideModel(), "--max-model-len", "512", "-n", "16", "--ignore-eos", "--stats"}, Input(input));
  ASSERT_EQ(chat.status, 0) << chat.err;
  std::istringstream lines(chat.err);
  int num_cuts = 0;
  int num_after_a_cut = 0;
  int num_cached = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" dropped]") != std::string::npos) ++num_cuts;
    if (!line.starts_with("prompt ") || num_cuts == 0) continue;
    ++num_after_a_cut;
    const int num_prompt = std::stoi(line.substr(7));
    if (2 * std::stoi(line.substr(line.find('(') + 1)) > num_prompt) ++num_cached;
  }
  EXPECT_GE(num_cuts, 2);
  EXPECT_GE(num_after_a_cut, 15);
  EXPECT_GT(2 * num_cached, num_after_a_cut) << chat.err;
}

TEST(ChatContextTest, TheSystemMessageStaysInThePrefixCacheAfterACut) {
  std::string system;
  for (int i = 0; i < 24; ++i) system += "Answer questions about vllmcli. ";
  system.pop_back();
  const ProgramResult count = RunProgram(
      {"tokenize", "-m", GuideModel(), "--count", "--no-add-special-tokens", "<s><|system|>" + system + "</s>"});
  ASSERT_EQ(count.status, 0) << count.err;
  const int num_system = std::stoi(count.out) / 16 * 16;  // whole blocks
  ASSERT_GE(num_system, 64);
  std::string input;
  for (int i = 0; i < 24; ++i) input += "Tell me about flag number " + std::to_string(i) + ", please.\n";
  const ProgramResult chat = RunProgram({"chat", "-m", GuideModel(), "--max-model-len", "512", "-n", "16",
                                         "--ignore-eos", "--stats", "--system", system, "--quiet"},
                                        Input(input));
  ASSERT_EQ(chat.status, 0) << chat.err;
  std::istringstream lines(chat.err);
  int num_cuts = 0;
  bool is_cut = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" dropped]") != std::string::npos) is_cut = true;  // printed even with --quiet
    if (!line.starts_with("prompt ") || !is_cut) continue;
    EXPECT_GE(std::stoi(line.substr(line.find('(') + 1)), num_system) << line;
    is_cut = false;
    ++num_cuts;
  }
  EXPECT_GE(num_cuts, 2);
}

}  // namespace
}  // namespace vllm::app
