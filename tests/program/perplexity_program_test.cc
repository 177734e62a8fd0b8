// Runs vllmcli perplexity. The expected values are computed from the prompt_logprobs that `vllmcli complete` prints for
// one chunk at a time.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

class PerplexityProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(GuideModel(), "");
    std::ifstream file(std::string(VLLMCLI_SOURCE_DIR) + "/README.md");
    text_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    ASSERT_GT(text_.size(), 2000u);
    text_.resize(2000);
    while ((text_.back() & 0x80) != 0 || text_.back() == '\n') text_.pop_back();
    path_ = Write("text.txt", text_ + "\n");
  }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = temp_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  ProgramResult Run(std::vector<std::string> more, const ProgramOptions& options = {}) const {
    more.insert(more.begin(), {"perplexity", "-m", GuideModel()});
    return RunProgram(more, options);
  }

  Json RunJson(std::vector<std::string> more) const {
    more.insert(more.end(), {path_, "--json"});
    const ProgramResult result = Run(more);
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out, nullptr, false);
  }

  std::vector<int32_t> Tokens() const {
    return Json::parse(RunProgram({"tokenize", "-m", GuideModel(), "-"}, Input(text_)).out).get<std::vector<int32_t>>();
  }

  // Returns the negative log-likelihoods of the tokens of a chunk from position `first` on.
  static std::vector<double> Nll(const std::vector<int32_t>& chunk, size_t first) {
    std::string ids;
    for (const int32_t id : chunk) ids += (ids.empty() ? "" : ",") + std::to_string(id);
    const ProgramResult result = RunProgram({"complete", "-m", GuideModel(), "--prompt-ids", ids, "--prompt-logprobs",
                                             "0", "-t", "0", "-n", "1", "--json"});
    const Json logprobs = Json::parse(result.out)["prompt_logprobs"];
    std::vector<double> nll;
    for (size_t i = first; i < chunk.size(); ++i) nll.push_back(-logprobs[i]["logprob"].get<double>());
    return nll;
  }

  static void ExpectPerplexity(const Json& actual, const std::vector<double>& nll) {
    double mean = 0;
    for (const double x : nll) mean += x / static_cast<double>(nll.size());
    double variance = 0;
    for (const double x : nll) variance += (x - mean) * (x - mean) / static_cast<double>(nll.size() - 1);
    const double perplexity = std::exp(mean);
    EXPECT_EQ(actual["num_tokens"], nll.size());
    EXPECT_NEAR(actual["mean_nll"], mean, 1e-4);
    EXPECT_NEAR(actual["perplexity"], perplexity, 1e-4 * perplexity);
    EXPECT_NEAR(actual["uncertainty"], perplexity * std::sqrt(variance / static_cast<double>(nll.size())),
                1e-4 * perplexity);
  }

  TempDirectory temp_;
  std::string text_;
  std::string path_;
};

TEST_F(PerplexityProgramTest, CountsTheSecondHalfOfEachChunk) {
  const std::vector<int32_t> tokens = Tokens();
  ASSERT_GT(tokens.size(), 300u);
  std::vector<double> nll;
  for (size_t start = 0; start + 128 <= tokens.size(); start += 128) {
    std::vector<int32_t> chunk(tokens.begin() + static_cast<std::ptrdiff_t>(start),
                               tokens.begin() + static_cast<std::ptrdiff_t>(start) + 128);
    chunk[0] = 1;  // BOS
    const std::vector<double> part = Nll(chunk, 65);
    nll.insert(nll.end(), part.begin(), part.end());
  }
  const Json json = RunJson({"--context", "128"});
  ExpectPerplexity(json, nll);
  EXPECT_EQ(json["num_chunks"], tokens.size() / 128);
  EXPECT_EQ(json["context"], 128);
  EXPECT_TRUE(json["stride"].is_null());
}

TEST_F(PerplexityProgramTest, AStrideCountsTheEndOfEachChunk) {
  const std::vector<int32_t> tokens = Tokens();
  std::vector<double> nll;
  for (size_t start = 0; start + 256 < tokens.size(); start += 100) {
    std::vector<int32_t> chunk(tokens.begin() + static_cast<std::ptrdiff_t>(start),
                               tokens.begin() + static_cast<std::ptrdiff_t>(start) + 256);
    chunk[0] = 1;  // BOS
    const std::vector<double> part = Nll(chunk, 156);
    nll.insert(nll.end(), part.begin(), part.end());
  }
  const Json json = RunJson({"--context", "256", "--stride", "100"});
  ExpectPerplexity(json, nll);
  EXPECT_EQ(json["stride"], 100);
}

TEST_F(PerplexityProgramTest, TheResultDoesNotDependOnBatching) {
  const Json expected = RunJson({"--context", "64"});
  EXPECT_EQ(RunJson({"--context", "64", "--max-num-seqs", "1"}), expected);
  EXPECT_EQ(RunJson({"--context", "64", "--max-num-batched-tokens", "100", "--max-num-seqs", "9"}), expected);
  EXPECT_EQ(RunJson({"--context", "64", "--data-parallel-size", "2", "--threads-per-rank", "1"}), expected);
}

TEST_F(PerplexityProgramTest, PrintsOneLineAndNoProgress) {
  const ProgramResult result = Run({path_, "--context", "128"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const Json json = RunJson({"--context", "128"});
  char expected[100];
  std::snprintf(expected, sizeof(expected), "perplexity %.4f ± %.4f (%d tokens, %d chunks of 128)\n",
                json["perplexity"].get<double>(), json["uncertainty"].get<double>(), json["num_tokens"].get<int>(),
                json["num_chunks"].get<int>());
  EXPECT_EQ(result.out, expected);
  EXPECT_EQ(Run({"-", "--context", "128"}, Input(text_)).out, expected);
}

TEST_F(PerplexityProgramTest, AChunkCanBeAsLongAsTheContextOfTheModel) {
  std::string text;
  while (text.size() < 12'000) text += text_;
  const std::string path = Write("long.txt", text);
  const ProgramResult result = Run({path, "--context", "1024"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find(" of 1024)\n"), std::string::npos) << result.out;
}

TEST_F(PerplexityProgramTest, ComparesQuantizedWeightsWithTheOriginalOnes) {
  const Json own = RunJson({"--context", "64", "-q", "int8"});
  const Json reference = RunJson({"--context", "64"});
  const Json json = RunJson({"--context", "64", "-q", "int8", "--kl-reference-quantization", "none"});
  EXPECT_NEAR(json["perplexity"], own["perplexity"], 1e-9 * own["perplexity"].get<double>());
  EXPECT_NEAR(json["reference_perplexity"]["value"], reference["perplexity"],
              1e-9 * reference["perplexity"].get<double>());
  EXPECT_NEAR(json["perplexity_ratio"]["value"],
              own["perplexity"].get<double>() / reference["perplexity"].get<double>(), 1e-9);
  const double int8 = json["kl_divergence"]["value"];
  EXPECT_GT(int8, 1e-5);
  EXPECT_LT(int8, 0.02);
  EXPECT_GT(json["max_kl_divergence"].get<double>(), int8);
  EXPECT_GT(json["same_top_token"]["value"].get<double>(), 0.9);
  const Json coarse = RunJson({"--context", "64", "-q", "int4", "--kl-reference-quantization", "none"});
  EXPECT_GT(coarse["kl_divergence"]["value"].get<double>(), 2 * int8);
}

TEST_F(PerplexityProgramTest, AModelDoesNotDifferFromItself) {
  const ProgramResult result = Run({path_, "--context", "128", "--kl-reference", GuideModel()});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("\nperplexity ratio 1.000000 ± 0.000000\n"
                            "KL divergence 0.000000 ± 0.000000 (largest 0.000000)\n"
                            "same most probable token 100.000 % ± 0.000 %\n"),
            std::string::npos)
      << result.out;
}

TEST_F(PerplexityProgramTest, UnusableInputIsAUsageErrorThatNamesIt) {
  const std::string short_text = Write("short.txt", "A few words.\n");
  const std::string empty = Write("empty.txt", "");
  const std::string invalid = Write("invalid.txt", "abc\xff def");
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::vector<Case> cases = {
      {{}, "perplexity: needs one text file (0 given)"},
      {{path_, path_}, "perplexity: needs one text file (2 given)"},
      {{path_ + ".none"}, "text.txt.none: No such file or directory"},
      {{empty}, "empty.txt: is empty"},
      {{invalid}, "invalid.txt: is not valid UTF-8 (at byte 3)"},
      {{short_text}, "short.txt: is shorter than one chunk ("},
      {{short_text, "--context", "20", "--stride", "4"}, "short.txt: is shorter than a chunk and one token ("},
      {{path_, "--context", "1025"}, "--context: larger than the context of model "},
      {{path_, "--context", "3"}, "--context: must be at least 4 (3)"},
      {{path_, "--context", "64", "--stride", "64"}, "--stride: must be at least 1 and less than --context, 64 (64)"},
      {{path_, "--stride", "0"}, "--stride: must be at least 1 and less than --context, 512 (0)"},
      {{path_, "--context", "64", "--kl-reference", std::string(VLLMCLI_TEST_DATA) + "/models/llama"},
       "has another vocabulary (64 tokens, not 2048)"},
  };
  for (const Case& test : cases) {
    const ProgramResult result = Run(test.arguments);
    EXPECT_EQ(result.status, 2) << test.message;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(test.message), std::string::npos) << result.err;
  }
  EXPECT_EQ(Run({"-"}, Input("")).err, "vllmcli: perplexity: standard input: is empty\n");
  EXPECT_EQ(Run({path_, "--kl-reference", temp_.path() + "/none"}).status, 3);
}

}  // namespace
}  // namespace vllm::app
