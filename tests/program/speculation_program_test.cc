// Runs the commands with --speculative-config: the answers are those without it, and the drafts are counted.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

constexpr const char* kNgram = R"({"method":"ngram","prompt_lookup_min":1,"adaptive":false})";
constexpr const char* kRepetitive = "one two three four one two three four one two three four one two";

ProgramResult RunWith(std::vector<std::string> arguments, const std::string& config) {
  arguments.insert(arguments.end(), {"--speculative-config", config});
  return RunProgram(arguments);
}

void ExpectCounts(const Json& method) {
  EXPECT_GT(method["drafts"], 0);
  EXPECT_GE(method["draft_tokens"], method["drafts"]);
  EXPECT_LE(method["accepted_tokens"], method["draft_tokens"]);
  EXPECT_DOUBLE_EQ(method["drafted_per_position"][0].get<double>(), method["drafts"].get<double>());
  EXPECT_EQ(method["accepted_per_position"].size(), method["drafted_per_position"].size());
}

TEST(SpeculationProgramTest, RunGivesTheSameTokensAndCountsTheDrafts) {
  ASSERT_NE(GuideModel(), "");
  for (const char* temperature : {"0", "0.8"}) {
    const std::vector<std::string> run = {"run",       "-m",     GuideModel(),   "--seed",  "7",
                                          "-n",        "60",     "--ignore-eos", "--stats", "--temperature",
                                          temperature, "--json", kRepetitive};
    const ProgramResult off = RunWith(run, "off");
    const ProgramResult on = RunWith(run, kNgram);
    ASSERT_EQ(off.status, 0) << off.err;
    ASSERT_EQ(on.status, 0) << on.err;
    const Json expected = Json::parse(off.out);
    const Json json = Json::parse(on.out);
    EXPECT_EQ(json["outputs"], expected["outputs"]);
    EXPECT_GT(json["draft_tokens"], 0);
    EXPECT_LE(json["accepted_draft_tokens"], json["draft_tokens"]);
    EXPECT_EQ(expected["draft_tokens"], 0);
    EXPECT_NE(on.err.find("speculation: ngram, "), std::string::npos) << on.err;
    EXPECT_EQ(off.err.find("speculation"), std::string::npos) << off.err;
  }
}

TEST(SpeculationProgramTest, ADraftModelGivesTheSameTokens) {
  for (const char* temperature : {"0", "0.8"}) {
    const std::vector<std::string> run = {"run",       "-m",     GuideModel(),           "--seed",  "7",
                                          "-n",        "40",     "--ignore-eos",         "--stats", "--temperature",
                                          temperature, "--json", "How do I run a batch?"};
    const Json expected = Json::parse(RunWith(run, "off").out);
    for (const char* ranks : {"", R"(,"draft_tensor_parallel_size":2)"}) {
      // The model drafts for itself.
      const std::string config = R"({"method":"draft_model","model":")" + GuideModel() +
                                 R"(","num_speculative_tokens":3,"adaptive":false)" + ranks + "}";
      const ProgramResult result = RunWith(run, config);
      ASSERT_EQ(result.status, 0) << result.err;
      const Json json = Json::parse(result.out);
      EXPECT_EQ(json["outputs"], expected["outputs"]);
      EXPECT_GT(json["accepted_draft_tokens"], 10);
      // Both sample with the same random numbers.
      EXPECT_EQ(json["accepted_draft_tokens"], json["draft_tokens"]);
      EXPECT_NE(result.err.find("speculation: draft_model, "), std::string::npos) << result.err;
    }
  }
}

TEST(SpeculationProgramTest, ADraftModelMustExistAndHaveTheSameVocabulary) {
  const TempDirectory temp;
  const auto error_of = [](const std::string& model) {
    const ProgramResult result =
        RunWith({"run", "-m", GuideModel(), "hello"}, R"({"method":"draft_model","model":")" + model + R"("})");
    EXPECT_NE(result.status, 0);
    return result.err;
  };
  EXPECT_NE(error_of(temp.path() + "/none").find("/none"), std::string::npos);
  const std::string other = temp.path() + "/other";
  std::filesystem::copy(GuideModel(), other, std::filesystem::copy_options::recursive);
  std::ifstream in(other + "/tokenizer.json");
  Json tokenizer = Json::parse(in);
  Json& vocab = tokenizer["model"]["vocab"];
  std::swap(vocab["."], vocab[","]);
  std::ofstream(other + "/tokenizer.json") << tokenizer;
  EXPECT_NE(error_of(other).find("other: has another vocabulary (token "), std::string::npos);
}

TEST(SpeculationProgramTest, InvalidConfigurationsAreUsageErrors) {
  for (const char* config : {"fast", "{", R"({"method":"ngram","k":1})", R"({"method":"ngram","prompt_lookup_min":0})",
                             R"({"method":"eagle"})"}) {
    for (const char* command : {"run", "complete", "bench", "batch"}) {
      std::vector<std::string> arguments = {command, command == std::string("bench") ? "latency" : "/dev/null"};
      if (command == std::string("batch")) arguments.insert(arguments.end(), {"--input-format", "txt"});
      const ProgramResult result = RunWith(arguments, config);
      EXPECT_EQ(result.status, 2) << command << " " << config;
      EXPECT_NE(result.err.find("--speculative-config: "), std::string::npos) << result.err;
    }
  }
}

TEST(SpeculationProgramTest, TheConfigurationFileSetsIt) {
  const TempDirectory temp;
  const std::string file = temp.Write("config.toml", "speculative-config = '{\"method\": \"fast\"}'\n");
  const ProgramResult result = RunProgram({"run", "--config", file, "hello"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("method: must be off, auto, ngram, suffix, grammar or draft_model (fast)"),
            std::string::npos)
      << result.err;
}

TEST(SpeculationProgramTest, BatchGivesTheSameRecords) {
  const TempDirectory temp;
  std::string rows;
  for (int i = 0; i < 6; ++i) {
    rows +=
        Json{{"id", i}, {"prompt", std::string(kRepetitive) + std::string(static_cast<size_t>(i), '.')}}.dump() + "\n";
  }
  const std::string input = temp.Write("in.jsonl", rows);
  const std::vector<std::string> batch = {
      "batch", input, "--ordered", "--max-tokens", "40", "--ignore-eos", "--stats", "--max-num-seqs", "3"};
  const ProgramResult off = RunWith(batch, "off");
  const ProgramResult on = RunWith(batch, kNgram);
  ASSERT_EQ(off.status, 0) << off.err;
  ASSERT_EQ(on.status, 0) << on.err;
  EXPECT_EQ(on.out, off.out);
  EXPECT_NE(on.err.find("speculation: ngram, "), std::string::npos) << on.err;
}

TEST(SpeculationProgramTest, AResumedBatchMayChangeIt) {
  const TempDirectory temp;
  const std::string input = temp.Write("in.txt", "one\ntwo\n");
  const std::string output = temp.path() + "/out.jsonl";
  ASSERT_EQ(RunWith({"batch", input, "-o", output, "--max-tokens", "2", "--limit", "1"}, "off").status, 0);
  const ProgramResult result = RunWith({"batch", input, "-o", output, "--max-tokens", "2", "--resume"}, "ngram");
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST(SpeculationProgramTest, BenchRunsTheRowsOfADataset) {
  const TempDirectory temp;
  const std::string rows = temp.Write(
      "rows.jsonl", "{\"prompt\": \"" + std::string(kRepetitive) + "\", \"temperature\": 0}\n\n" +
                        R"({"messages": [{"role": "user", "content": "How do I chat?"}], "max_tokens": 1})" + "\n");
  const ProgramResult result =
      RunWith({"bench", "throughput", "--dataset", rows, "--num-prompts", "5", "--output-len", "30", "--json"}, kNgram);
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["dataset"], rows);
  EXPECT_EQ(json["num_requests"], 5);
  EXPECT_FALSE(json.contains("input_len"));
  ExpectCounts(json["speculation"]["ngram"]);
}

TEST(SpeculationProgramTest, BenchRunsTheLinesOfAText) {
  const TempDirectory temp;
  const std::string text = temp.Write("prompts.txt", "How do I run a batch?\r\n\nHow do I chat?\n");
  const ProgramResult result = RunWith({"bench", "latency", "--dataset", text, "--batch-size", "2", "--num-iters", "2",
                                        "--num-iters-warmup", "1", "--output-len", "20"},
                                       kNgram);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("Avg latency: "), std::string::npos) << result.out;
}

TEST(SpeculationProgramTest, UnusableDatasetsAreUsageErrors) {
  const TempDirectory temp;
  const auto error_of = [](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"bench", "throughput"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult result = RunProgram(arguments);
    EXPECT_EQ(result.status, 2);
    return result.err;
  };
  const std::string empty = temp.Write("empty.txt", "\n \n");
  EXPECT_NE(error_of({"--dataset", empty}).find("empty.txt: contains no prompt"), std::string::npos);
  const std::string bad = temp.Write("bad.jsonl", "{\"prompt\": \"a\"}\n{\"promt\": \"b\"}\n");
  EXPECT_NE(error_of({"--dataset", bad}).find("bad.jsonl: line 2: row: needs prompt"), std::string::npos);
  EXPECT_NE(error_of({"--dataset", temp.path() + "/none.txt"}).find("none.txt"), std::string::npos);
  EXPECT_NE(error_of({"--dataset", bad, "--input-len", "4"}).find("--input-len: cannot be used with --dataset"),
            std::string::npos);
}

}  // namespace
}  // namespace vllm::app
