// Tests the program as a process: exit statuses, standard streams, JSON, pipes and signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

// Returns the path of a copy of the bundled model without its chat template.
const std::string& PlainModel() {
  static const TempDirectory directory;
  static const std::string path = CopyGuideModel(directory.path() + "/plain", {.keeps_chat_template = false});
  return path;
}

// Returns arguments that make `complete` generate an answer too long to end during a test.
std::vector<std::string> EndlessAnswer() {
  static const TempDirectory directory;
  static const std::string path = CopyGuideModel(directory.path() + "/long", {.context = 100000});
  return {"complete", "-m", path, "--ignore-eos", "--max-model-len", "30000", "--kv-cache-memory", "64M", "Once"};
}

constexpr char kSimpleTemplate[] =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

std::string TemplateFile() {
  const std::string path = testing::TempDir() + "/vllmcli_simple.jinja";
  FILE* file = fopen(path.c_str(), "w");
  fputs(kSimpleTemplate, file);
  fclose(file);
  return path;
}

TEST(ProgramTest, HelpAndVersionGoToStandardOutput) {
  for (const char* flag : {"--help", "--version"}) {
    const ProgramResult result = RunProgram({flag});
    EXPECT_EQ(result.status, 0);
    EXPECT_FALSE(result.out.empty());
    EXPECT_EQ(result.err, "");
  }
  EXPECT_EQ(RunProgram({"batch", "--help"}).status, 0);
}

TEST(ProgramTest, UsageErrorsExitWithStatusTwo) {
  EXPECT_EQ(RunProgram({"nonsense"}).status, 2);
  EXPECT_EQ(RunProgram({"run", "--no-such-flag", "x"}).status, 2);
  EXPECT_EQ(RunProgram({"run"}).status, 2);
  EXPECT_EQ(RunProgram({}).status, 2);
  EXPECT_EQ(RunProgram({"batch"}).status, 2);
  EXPECT_EQ(RunProgram({"complete", "-n", "x", "y"}).status, 2);
  ProgramOptions closed;
  closed.close_stdin = true;
  EXPECT_EQ(RunProgram({"run"}, closed).status, 2);
}

TEST(ProgramTest, AMissingModelExitsWithStatusThree) {
  EXPECT_EQ(RunProgram({"complete", "-m", "/no/such/directory", "x"}).status, 3);
  EXPECT_EQ(RunProgram({"complete", "-m", "no/such-repository", "x"}).status, 3);
  EXPECT_EQ(RunProgram({"show", "/dev/null"}).status, 3);
}

TEST(ProgramTest, CompletionsConfigAndModelsNeedNoModel) {
  EXPECT_EQ(RunProgram({"completions", "bash"}).status, 0);
  EXPECT_EQ(RunProgram({"completions", "csh"}).status, 2);
  EXPECT_EQ(RunProgram({"models"}).status, 0);
  ProgramOptions environment;
  environment.environment = {{"VLLMCLI_MODEL", "/m"}, {"VLLMCLI_ISA", "generic"}};
  const ProgramResult config = RunProgram({"config", "--json"}, environment);
  EXPECT_EQ(config.status, 0);
  EXPECT_EQ(Json::parse(config.out)["model"]["source"], "environment");
  EXPECT_EQ(Json::parse(config.out)["isa"]["value"], "generic");
}

TEST(ProgramTest, AnInvalidEnvironmentVariableIsNamed) {
  ProgramOptions environment;
  environment.environment = {{"VLLMCLI_ISA", "sse9"}};
  const ProgramResult result = RunProgram({"show"}, environment);
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("VLLMCLI_ISA: must be one of"), std::string::npos) << result.err;
}

TEST(ProgramTest, AFullDeviceExitsWithStatusFour) {
  ProgramOptions full;
  full.redirect_out = "/dev/full";
  const ProgramResult result = RunProgram({"--help"}, full);
  EXPECT_EQ(result.status, 4);
  EXPECT_NE(result.err.find("standard output"), std::string::npos);
}

TEST(ProgramTest, CompletePrintsOnlyTheTextOrOneJsonObject) {
  const ProgramResult text =
      RunProgram({"complete", "-m", PlainModel(), "--ignore-eos", "-t", "0", "-n", "12", "Once upon a time"});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(text.err, "");
  const ProgramResult json = RunProgram({"complete", "-m", PlainModel(), "--ignore-eos", "-t", "0", "-n", "12",
                                         "--json", "--logprobs", "2", "Once upon a time"});
  const Json object = Json::parse(json.out);
  const Json& output = object["outputs"][0];
  EXPECT_EQ(output["text"].get<std::string>() + "\n", text.out);
  EXPECT_EQ(output["token_ids"].size(), 12u);
  EXPECT_EQ(output["finish_reason"], "length");
  EXPECT_TRUE(output["stop_reason"].is_null());
  EXPECT_EQ(output["logprobs"].size(), 12u);
  EXPECT_EQ(output["logprobs"][0]["top"].size(), 2u);
  EXPECT_GT(object["prompt_tokens"], 1);
  EXPECT_TRUE(object["timings"].contains("ttft_ms"));
}

TEST(ProgramTest, DeltasAddUpToTheAnswer) {
  const std::vector<std::string> common = {"complete", "-m", PlainModel(), "--ignore-eos", "-t",
                                           "0",        "-n", "20",         "Once"};
  std::vector<std::string> streaming = common;
  streaming.insert(streaming.begin() + 1, "--stream-json");
  std::istringstream lines(RunProgram(streaming).out);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += Json::parse(line)["text"].get<std::string>();
  EXPECT_EQ(text + "\n", RunProgram(common).out);
}

TEST(ProgramTest, PipedTextPrecedesTheWordsOfThePrompt) {
  const std::vector<std::string> flags = {"complete", "-m", PlainModel(), "-t", "0", "-n", "4", "--json"};
  std::vector<std::string> words = flags;
  words.push_back("One day");
  std::vector<std::string> tail = flags;
  tail.push_back("day");
  const Json whole = Json::parse(RunProgram(words).out);
  EXPECT_EQ(Json::parse(RunProgram(flags, Input("One day\n")).out)["outputs"], whole["outputs"]);
  words.back() = "One\nday";
  EXPECT_EQ(Json::parse(RunProgram(tail, Input("One\n")).out)["outputs"],
            Json::parse(RunProgram(words).out)["outputs"]);
}

TEST(ProgramTest, AReaderThatClosesThePipeEndsTheProgramQuietly) {
  ProgramOptions head;
  head.close_out_after = 5;
  // If the program completed the answer, --stats would print to standard error.
  std::vector<std::string> arguments = EndlessAnswer();
  arguments.push_back("--stats");
  const ProgramResult result = RunProgram(arguments, head);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
}

TEST(ProgramTest, ASignalEndsTheProgramWithStatus128PlusItsNumber) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    ProgramOptions options;
    options.signal_after_output = number;
    EXPECT_EQ(RunProgram(EndlessAnswer(), options).status, 128 + number);
  }
}

TEST(ProgramTest, FlagsOutOfRangeExitWithStatusTwo) {
  EXPECT_EQ(RunProgram({"complete", "-m", PlainModel(), "--top-p", "2", "x"}).status, 2);
  EXPECT_EQ(RunProgram({"complete", "-m", PlainModel(), "--n", "1000000000", "x"}).status, 2);
  EXPECT_EQ(RunProgram({"complete", "-m", PlainModel(), "--block-size", "7", "x"}).status, 2);
}

TEST(ProgramTest, RunNeedsAChatTemplate) {
  const ProgramResult without = RunProgram({"run", "-m", PlainModel(), "hi"});
  EXPECT_EQ(without.status, 3);
  EXPECT_NE(without.err.find("complete"), std::string::npos);
  const ProgramResult with =
      RunProgram({"run", "-m", PlainModel(), "--chat-template", TemplateFile(), "-n", "4", "hi"});
  EXPECT_EQ(with.status, 0) << with.err;
}

TEST(ProgramTest, TokenizeEncodesAndDecodes) {
  const ProgramResult ids = RunProgram({"tokenize", "-m", PlainModel(), "--no-add-special-tokens", "Once upon a time"});
  ASSERT_EQ(ids.status, 0) << ids.err;
  const Json list = Json::parse(ids.out);
  ASSERT_TRUE(list.is_array());
  EXPECT_EQ(RunProgram({"tokenize", "-m", PlainModel(), "--decode", ids.out}).out, "Once upon a time\n");
  EXPECT_EQ(RunProgram({"tokenize", "-m", PlainModel(), "--no-add-special-tokens", "--count", "Once upon a time"}).out,
            std::to_string(list.size()) + "\n");
  EXPECT_EQ(RunProgram({"tokenize", "-m", PlainModel(), "--no-add-special-tokens", "--jsonl"},
                       Input("\"Once upon a time\"\n\"\"\n"))
                .out,
            ids.out + "[]\n");
  EXPECT_EQ(RunProgram({"tokenize", "-m", PlainModel(), "--decode", "--jsonl"}, Input(ids.out)).out,
            "\"Once upon a time\"\n");
}

TEST(ProgramTest, RenderPrintsTheExactPrompt) {
  const std::vector<std::string> flags = {"render", "-m", PlainModel(), "--chat-template", TemplateFile(), "-"};
  EXPECT_EQ(RunProgram(flags, Input(R"([{"role":"user","content":"hi"}])")).out, "user: hi\nassistant:");
  const ProgramResult lines =
      RunProgram({"render", "--jsonl", "-"},
                 Input("{\"chat_template\":\"{{ messages[0].content }}\",\"context\":{\"messages\":[{\"role\":\"user\","
                       "\"content\":\"hi\"}]}}\n{\"chat_template\":\"{% if\",\"context\":{}}\n"));
  EXPECT_EQ(lines.status, 0) << lines.err;
  std::istringstream stream(lines.out);
  std::string first;
  std::string second;
  std::getline(stream, first);
  std::getline(stream, second);
  EXPECT_EQ(Json::parse(first), (Json{{"text", "hi"}}));
  EXPECT_TRUE(Json::parse(second).contains("error"));
}

TEST(ProgramTest, ShowDescribesAModel) {
  const ProgramResult result = RunProgram({"show", "--json", PlainModel()});
  ASSERT_EQ(result.status, 0) << result.err;
  const Json json = Json::parse(result.out);
  EXPECT_EQ(json["architecture"], "LlamaForCausalLM");
  EXPECT_EQ(json["hidden_size"], 256);
  EXPECT_EQ(json["parameters"], 2048 * 256 + 256 + 4 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 640 * 256 + 2 * 256));
}

TEST(ProgramTest, RotaryScalingThatDiffersFromTransformersIsAWarning) {
  const auto warnings = [](const std::string& model, std::vector<std::string> flags) {
    std::vector<std::string> words = {
        "complete", "-m", std::string(VLLMCLI_TEST_DATA) + "/" + model, "--prompt-ids", "5,6,7", "-n", "1"};
    words.insert(words.end(), flags.begin(), flags.end());
    const ProgramResult result = RunProgram(words, Input(""));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.err;
  };
  const std::string long_rope = warnings("models/phi3_long", {});
  EXPECT_NE(
      long_rope.find("LongRoPE uses its long factors for every text, and transformers only for texts of more than "
                     "4 tokens; --max-model-len 4 avoids the difference"),
      std::string::npos)
      << long_rope;
  EXPECT_EQ(warnings("models/phi3_long", {"--max-model-len", "4"}).find("LongRoPE"), std::string::npos);
  const std::string dynamic = warnings("llama/rope_dynamic_within", {});
  EXPECT_NE(dynamic.find("dynamic RoPE scaling changes the angles from position "), std::string::npos) << dynamic;
  EXPECT_EQ(warnings("llama/rope_dynamic_within", {"--max-model-len", "16"}).find("RoPE"), std::string::npos);
  EXPECT_EQ(warnings("llama/rope_yarn", {}).find("RoPE"), std::string::npos);
}

TEST(ProgramTest, BenchRunsWithDummyWeightsAndWithRealOnes) {
  const ProgramResult latency =
      RunProgram({"bench", "latency", "-m", PlainModel(), "--load-format", "dummy", "--input-len", "8", "--output-len",
                  "4", "--batch-size", "2", "--num-iters", "2", "--num-iters-warmup", "1", "--json"});
  ASSERT_EQ(latency.status, 0) << latency.err;
  EXPECT_GT(Json::parse(latency.out)["avg_latency"], 0.0);
  const ProgramResult throughput = RunProgram(
      {"bench", "throughput", "-m", PlainModel(), "--input-len", "8", "--output-len", "4", "--num-prompts", "5"});
  ASSERT_EQ(throughput.status, 0) << throughput.err;
  EXPECT_EQ(throughput.out.rfind("Throughput: ", 0), 0u);
}

TEST(ProgramTest, BenchComparesWithAnEarlierRun) {
  const std::string file = testing::TempDir() + "/vllmcli_bench_" + std::to_string(getpid()) + ".json";
  const std::vector<std::string> bench = {
      "bench",        "latency", "-m",           PlainModel(), "--load-format", "dummy", "--input-len", "4",
      "--prefix-len", "32",      "--output-len", "2",          "--num-iters",   "1",     "--json"};
  const auto with = [&](const std::string& flag, const std::string& value) {
    std::vector<std::string> arguments = bench;
    arguments.insert(arguments.end(), {flag, value});
    return RunProgram(arguments);
  };
  const ProgramResult before = with("--output-json", file);
  ASSERT_EQ(before.status, 0) << before.err;
  EXPECT_EQ(Json::parse(before.out)["prefix_len"], 32);
  const ProgramResult now = with("--compare", file);
  ASSERT_EQ(now.status, 0) << now.err;
  const Json compared = Json::parse(now.out)["compared"];
  EXPECT_EQ(compared["avg_latency"]["before"], Json::parse(before.out)["avg_latency"]);
  EXPECT_DOUBLE_EQ(
      compared["percentiles.50"]["ratio"].get<double>(),
      compared["percentiles.50"]["now"].get<double>() / compared["percentiles.50"]["before"].get<double>());

  const ProgramResult missing = with("--compare", file + ".none");
  EXPECT_EQ(missing.status, 2);
  EXPECT_NE(missing.err.find(".none"), std::string::npos) << missing.err;
  std::ofstream(file) << "[[[[[[1]]]]]]";
  const ProgramResult other = with("--compare", file);
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("not written by vllmcli bench --output-json"), std::string::npos) << other.err;
  std::remove(file.c_str());
}

}  // namespace
}  // namespace vllm::app
