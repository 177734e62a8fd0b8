// A long chat finds the earlier turns in the prefix cache.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "tests/program/chats_test.h"
#include "tests/support/realdata.h"

namespace vllm::app {
namespace {

// Twenty questions of MT-bench in one conversation with a real model. Without a cut of the context, only the new
// question and the rest of a block are computed in each turn. Prints the figures of every turn.
TEST(ChatCacheTest, TwentyTurnsFindTheirHistoryInThePrefixCache) {
  VLLMCLI_NEEDS_REALDATA("prompts/mt_bench_question.jsonl");
  const std::string model = RealModel("SmolLM2-135M-Instruct");
  if (model.empty()) GTEST_SKIP() << "reference data not found: SmolLM2-135M-Instruct";
  std::ifstream file(testing_support::RealData("prompts/mt_bench_question.jsonl"));
  std::string input;
  std::string line;
  for (int i = 0; i < 10 && std::getline(file, line); ++i) {
    const Json question = Json::parse(line);
    for (std::string turn : question["turns"]) {
      for (char& c : turn) c = c == '\n' ? ' ' : c;
      input += turn + "\n";
    }
  }
  const TempDirectory temp;
  ProgramOptions options = Input(input);
  options.environment = {{"XDG_DATA_HOME", temp.path()}, {"XDG_CACHE_HOME", temp.path()}};
  const char* variable = getenv("VLLMCLI_CHAT_TOKENS");
  const ProgramResult result =
      RunProgram({"chat", "-m", model, "-n", variable == nullptr ? "24" : variable, "--seed", "5", "--stats"}, options);
  ASSERT_EQ(result.status, 0) << result.err;
  ASSERT_EQ(result.err.find("dropped]"), std::string::npos) << "the context was cut";

  long long all_prompts = 0;
  long long all_cached = 0;
  long long previous_end = 0;
  int turn = 0;
  size_t at = 0;
  while ((at = result.err.find("prompt ", at)) != std::string::npos) {
    long long num_prompt = 0;
    long long num_cached = 0;
    double speed = 0;
    long long num_answer = 0;
    if (std::sscanf(result.err.c_str() + at, "prompt %lld tokens (%lld cached) at %lf tokens/s, answer %lld tokens",
                    &num_prompt, &num_cached, &speed, &num_answer) != 4) {
      ++at;
      continue;
    }
    ++at;
    ++turn;
    std::printf("turn %2d: prompt %5lld tokens, %5lld cached (%.1f %%)\n", turn, num_prompt, num_cached,
                100.0 * static_cast<double>(num_cached) / static_cast<double>(num_prompt));
    if (turn > 1) {
      all_prompts += num_prompt;
      all_cached += num_cached;
      // Of the earlier turns, only the end of the last block (of 16 tokens) and the last token are not cached.
      EXPECT_GE(num_cached, previous_end - 18) << turn;
    }
    previous_end = num_prompt + num_answer;
  }
  EXPECT_EQ(turn, 20);
  const double share = static_cast<double>(all_cached) / static_cast<double>(all_prompts);
  std::printf("turns 2 to 20: %.1f %% of the prompt tokens cached\n", 100 * share);
  EXPECT_GE(share, 0.9);
}

}  // namespace
}  // namespace vllm::app
