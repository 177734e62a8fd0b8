// Tests the values of --speculative-config, and the errors of those that are invalid.
#include "app/cli/speculative_setting.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/config/errors.h"
#include "engine/config/vllm_config.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

// Returns the error of the parser or, if it accepts the text, of the check of the configuration.
std::string ErrorOf(const std::string& text) {
  return MessageOf<ConfigError>([&] {
    VllmConfig config;
    config.model.max_model_len = 512;
    config.speculative = ParseSpeculativeConfig(text);
    config.Finalize();
  });
}

TEST(SpeculativeSettingTest, ANameChoosesAMethodWithItsDefaults) {
  EXPECT_EQ(ParseSpeculativeConfig("off").method, SpeculativeMethod::kOff);
  EXPECT_EQ(ParseSpeculativeConfig("suffix").method, SpeculativeMethod::kSuffix);
  EXPECT_EQ(ParseSpeculativeConfig("grammar").method, SpeculativeMethod::kGrammar);
  const SpeculativeConfig ngram = ParseSpeculativeConfig("ngram");
  EXPECT_EQ(ngram.method, SpeculativeMethod::kNgram);
  EXPECT_TRUE(ngram.adaptive);
  EXPECT_EQ(ngram.num_speculative_tokens, 0);
  EXPECT_EQ(ngram.prompt_lookup_min, 5);
  EXPECT_EQ(ngram.prompt_lookup_max, 5);
}

TEST(SpeculativeSettingTest, AutoIsAdaptiveSuffix) {
  for (const char* text : {"auto", R"({"method": "auto"})", R"({"method": "auto", "adaptive": true})"}) {
    const SpeculativeConfig config = ParseSpeculativeConfig(text);
    EXPECT_EQ(config.method, SpeculativeMethod::kSuffix) << text;
    EXPECT_TRUE(config.adaptive) << text;
  }
}

TEST(SpeculativeSettingTest, TheDefaultIsValid) { EXPECT_EQ(ErrorOf(std::string(kDefaultSpeculativeConfig)), ""); }

TEST(SpeculativeSettingTest, AnObjectSetsTheKeysOfItsMethod) {
  const SpeculativeConfig ngram = ParseSpeculativeConfig(
      R"( {"method": "ngram", "num_speculative_tokens": 128, "prompt_lookup_min": 2, "prompt_lookup_max": 4,)"
      R"( "adaptive": false})");
  EXPECT_EQ(ngram.method, SpeculativeMethod::kNgram);
  EXPECT_EQ(ngram.num_speculative_tokens, 128);
  EXPECT_EQ(ngram.prompt_lookup_min, 2);
  EXPECT_EQ(ngram.prompt_lookup_max, 4);
  EXPECT_FALSE(ngram.adaptive);
  const SpeculativeConfig suffix = ParseSpeculativeConfig(
      R"({"suffix_decoding_max_tree_depth": 64, "suffix_decoding_max_cached_requests": 0,)"
      R"( "suffix_decoding_max_spec_factor": 2, "suffix_decoding_min_token_prob": 0.25, "method": "suffix"})");
  EXPECT_EQ(suffix.method, SpeculativeMethod::kSuffix);
  EXPECT_EQ(suffix.suffix_decoding_max_tree_depth, 64);
  EXPECT_EQ(suffix.suffix_decoding_max_cached_requests, 0);
  EXPECT_EQ(suffix.suffix_decoding_max_spec_factor, 2.0);
  EXPECT_EQ(suffix.suffix_decoding_min_token_prob, 0.25);
  EXPECT_EQ(ParseSpeculativeConfig(R"({"method": "off", "num_speculative_tokens": 3})").method,
            SpeculativeMethod::kOff);
}

TEST(SpeculativeSettingTest, OneLimitOfTheMatchSetsBoth) {
  const SpeculativeConfig low = ParseSpeculativeConfig(R"({"method": "ngram", "prompt_lookup_min": 7})");
  EXPECT_EQ(low.prompt_lookup_min, 7);
  EXPECT_EQ(low.prompt_lookup_max, 7);
  const SpeculativeConfig high =
      ParseSpeculativeConfig(R"({"method": "ngram", "prompt_lookup_max": 2, "prompt_lookup_min": null})");
  EXPECT_EQ(high.prompt_lookup_min, 2);
  EXPECT_EQ(high.prompt_lookup_max, 2);
}

TEST(SpeculativeSettingTest, NullIsAValueThatIsNotSet) {
  const SpeculativeConfig config =
      ParseSpeculativeConfig(R"({"method": "ngram", "num_speculative_tokens": null, "adaptive": null, "model": null})");
  EXPECT_EQ(config.num_speculative_tokens, 0);
  EXPECT_TRUE(config.adaptive);
}

TEST(SpeculativeSettingTest, ManyDraftsOfALongMatchAreCut) {
  const SpeculativeConfig config =
      ParseSpeculativeConfig(R"({"method": "suffix", "suffix_decoding_max_tree_depth": 1024})");
  EXPECT_EQ(config.MaxDrafts(), kMaxSpeculativeTokens);
}

TEST(SpeculativeSettingTest, UnknownMethodsAreRejected) {
  EXPECT_EQ(ErrorOf("fast"), "--speculative-config: must be off, auto, ngram, suffix, grammar or a JSON object (fast)");
  EXPECT_EQ(ErrorOf(""), "--speculative-config: must be off, auto, ngram, suffix, grammar or a JSON object ()");
  EXPECT_EQ(ErrorOf("[1]"), "--speculative-config: must be off, auto, ngram, suffix, grammar or a JSON object ([1])");
  EXPECT_EQ(ErrorOf(R"({"method": "Ngram"})"),
            "--speculative-config: method: must be off, auto, ngram, suffix, grammar or draft_model (Ngram)");
  EXPECT_EQ(ErrorOf(R"({"method": 3})"),
            "--speculative-config: method: must be off, auto, ngram, suffix, grammar or draft_model (3)");
  EXPECT_EQ(ErrorOf(R"({"num_speculative_tokens": 3})"),
            "--speculative-config: method: missing; must be off, auto, ngram, suffix, grammar or draft_model");
}

TEST(SpeculativeSettingTest, ADraftModelIsNamed) {
  const SpeculativeConfig config = ParseSpeculativeConfig(
      R"({"method": "draft_model", "model": "a/b", "num_speculative_tokens": 3, "draft_tensor_parallel_size": 2})");
  EXPECT_EQ(config.method, SpeculativeMethod::kDraftModel);
  EXPECT_EQ(config.model, "a/b");
  EXPECT_EQ(config.MaxDrafts(), 3);
  EXPECT_EQ(config.draft_tensor_parallel_size, 2);
  EXPECT_EQ(ParseSpeculativeConfig(R"({"method": "draft_model", "model": "x"})").MaxDrafts(), 4);
  EXPECT_EQ(ErrorOf("draft_model"), "--speculative-config: draft_model needs the name of the model");
  EXPECT_EQ(
      ErrorOf(R"({"method": "draft_model"})"),
      "--speculative-config: model: missing; the method draft_model needs the name of a small model with the same "
      "vocabulary");
  for (const char* value : {"1", "\"\"", "[]"}) {
    EXPECT_EQ(ErrorOf(R"({"method": "draft_model", "model": )" + std::string(value) + "}").substr(0, 57),
              "--speculative-config: model: must be the name of a model ");
  }
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "model": "a"})"),
            "--speculative-config: model: belongs to the method draft_model, not to ngram (a)");
}

TEST(SpeculativeSettingTest, MethodsThatNeedTrainedWeightsAreRejected) {
  const std::string why =
      "not supported, because it needs weights trained for it; must be off, auto, ngram, suffix, grammar or "
      "draft_model";
  for (const std::string method : {"eagle3", "medusa", "mtp", "deepseek_mtp"}) {
    EXPECT_EQ(ErrorOf(method), "--speculative-config: method: " + why + " (" + method + ")");
    EXPECT_EQ(ErrorOf(R"({"method": ")" + method + R"(", "model": "a"})"),
              "--speculative-config: method: " + why + " (" + method + ")");
  }
}

TEST(SpeculativeSettingTest, UnknownKeysAndKeysOfAnotherMethodAreRejected) {
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "num_speculative_token": 4})"),
            "--speculative-config: unknown key num_speculative_token (4); did you mean num_speculative_tokens?");
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "temperature\n": {"a": 1}})"),
            "--speculative-config: unknown key temperature\\x0a (an object); the keys are method, "
            "num_speculative_tokens, adaptive, prompt_lookup_min, prompt_lookup_max");
  EXPECT_EQ(ErrorOf(R"({"method": "suffix", "prompt_lookup_max": 4})"),
            "--speculative-config: prompt_lookup_max: belongs to the method ngram, not to suffix (4)");
  EXPECT_EQ(ErrorOf(R"({"method": "off", "prompt_lookup_max": 4})"),
            "--speculative-config: prompt_lookup_max: belongs to the method ngram, not to off (4)");
  EXPECT_EQ(ErrorOf(R"({"method": "auto", "suffix_decoding_max_tree_depth": 3})"),
            "--speculative-config: suffix_decoding_max_tree_depth: belongs to the method suffix, not to auto (3)");
}

TEST(SpeculativeSettingTest, ValuesOfTheWrongTypeAreRejected) {
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "num_speculative_tokens": "4"})"),
            "--speculative-config: num_speculative_tokens: must be an integer (4)");
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "num_speculative_tokens": 2.5})"),
            "--speculative-config: num_speculative_tokens: must be an integer (2.5)");
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "num_speculative_tokens": 9223372036854775808})"),
            "--speculative-config: num_speculative_tokens: must be an integer (9223372036854775808)");
  EXPECT_EQ(ErrorOf(R"({"method": "ngram", "prompt_lookup_min": [[1]]})"),
            "--speculative-config: prompt_lookup_min: must be an integer (a list)");
  EXPECT_EQ(ErrorOf(R"({"method": "suffix", "suffix_decoding_max_spec_factor": true})"),
            "--speculative-config: suffix_decoding_max_spec_factor: must be a number (true)");
  EXPECT_EQ(ErrorOf(R"({"method": "suffix", "adaptive": 1})"),
            "--speculative-config: adaptive: must be true or false (1)");
  EXPECT_EQ(ErrorOf(R"({"method": "auto", "adaptive": false})"),
            "--speculative-config: adaptive: must be true with the method auto; suffix also accepts false (false)");
}

TEST(SpeculativeSettingTest, ValuesOutOfRangeAreRejected) {
  const auto ngram = [](const std::string& members) { return ErrorOf(R"({"method": "ngram", )" + members + "}"); };
  const auto suffix = [](const std::string& member) {
    return ErrorOf(R"({"method": "suffix", "suffix_decoding_)" + member + "}");
  };
  EXPECT_EQ(ngram(R"("num_speculative_tokens": 0)"),
            "--speculative-config: num_speculative_tokens: outside 1 to 128 (0)");
  EXPECT_EQ(ngram(R"("num_speculative_tokens": 129)"),
            "--speculative-config: num_speculative_tokens: outside 1 to 128 (129)");
  EXPECT_EQ(ngram(R"("prompt_lookup_min": 0)"), "--speculative-config: prompt_lookup_min: outside 1 to 1024 (0)");
  EXPECT_EQ(ngram(R"("prompt_lookup_max": 1025, "prompt_lookup_min": 1)"),
            "--speculative-config: prompt_lookup_max: outside 1 to 1024 (1025)");
  EXPECT_EQ(ngram(R"("prompt_lookup_max": 3, "prompt_lookup_min": 4)"),
            "--speculative-config: prompt_lookup_min: above prompt_lookup_max 3 (4)");
  EXPECT_EQ(suffix(R"(max_tree_depth": 0)"),
            "--speculative-config: suffix_decoding_max_tree_depth: outside 1 to 1024 (0)");
  EXPECT_EQ(suffix(R"(max_cached_requests": -1)"),
            "--speculative-config: suffix_decoding_max_cached_requests: outside 0 to 1073741824 (-1)");
  EXPECT_EQ(suffix(R"(max_spec_factor": 0)"),
            "--speculative-config: suffix_decoding_max_spec_factor: must be above 0 and at most 16 (0)");
  EXPECT_EQ(suffix(R"(max_spec_factor": 16.5)"),
            "--speculative-config: suffix_decoding_max_spec_factor: must be above 0 and at most 16 (16.5)");
  EXPECT_EQ(suffix(R"(min_token_prob": 1.5)"),
            "--speculative-config: suffix_decoding_min_token_prob: outside 0 to 1 (1.5)");
  EXPECT_EQ(suffix(R"(min_token_prob": 0)"), "");
  EXPECT_EQ(suffix(R"(min_token_prob": 1)"), "");
}

TEST(SpeculativeSettingTest, InvalidJsonIsRejected) {
  EXPECT_EQ(ErrorOf("{method:ngram}"), "--speculative-config: invalid JSON at character 2 ({method:ngram})");
  EXPECT_EQ(ErrorOf(R"({"method": "ngram"} x)"),
            R"(--speculative-config: invalid JSON at character 21 ({"method": "ngram"} x))");
  EXPECT_EQ(ErrorOf(R"({"a": 1e999})"), R"(--speculative-config: a number is too large ({"a": 1e999}))");
  EXPECT_NE(ErrorOf(R"({"a": )" + std::string(100000, '[')), "");
  EXPECT_EQ(ErrorOf(R"({"a": )" + std::string(100000, '[') + std::string(100000, ']') + "}"),
            "--speculative-config: method: missing; must be off, auto, ngram, suffix, grammar or draft_model");
}

}  // namespace
}  // namespace vllm::app
