#include "engine/request/sampling_params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kVocab = 100;

void Normalize(SamplingParams& params) { params.Normalize(kVocab, 512, 20); }

std::string RejectionMessage(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  return MessageOf<RequestError>([&] { Normalize(params); });
}

TEST(SamplingParamsTest, DefaultsAreAccepted) {
  SamplingParams params;
  EXPECT_NO_THROW(Normalize(params));
  EXPECT_EQ(params.temperature, 1.0);
}

TEST(SamplingParamsTest, TinyTemperaturesAreRaisedToTheMinimumAndOnlyZeroIsGreedy) {
  for (double t : {1e-300, 1e-9, 0.00999}) {
    SamplingParams params;
    params.temperature = t;
    Normalize(params);
    EXPECT_EQ(params.temperature, 0.01);
    EXPECT_FALSE(params.greedy());
  }
  SamplingParams params;
  params.temperature = -0.0;
  params.top_p = 0.5;
  params.top_k = 7;
  params.min_p = 0.1;
  Normalize(params);
  EXPECT_TRUE(params.greedy());
  EXPECT_EQ(params.top_p, 1.0);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_EQ(params.min_p, 0.0);
}

TEST(SamplingParamsTest, FloatFieldsOutOfRangeAreRejected) {
  struct Field {
    const char* name;
    double SamplingParams::*member;
    double low, high;
  };
  const Field fields[] = {{"presence_penalty", &SamplingParams::presence_penalty, -2.0, 2.0},
                          {"frequency_penalty", &SamplingParams::frequency_penalty, -2.0, 2.0},
                          {"temperature", &SamplingParams::temperature, 0.0, 2.0},
                          {"min_p", &SamplingParams::min_p, 0.0, 1.0},
                          {"top_p", &SamplingParams::top_p, 1e-12, 1.0},
                          {"repetition_penalty", &SamplingParams::repetition_penalty, 1e-12, 1e300}};
  for (const Field& field : fields) {
    for (double bad : {kNan, kInf, -kInf, field.low - 1e-3, field.high * 1.1 + 1e-3}) {
      if (std::isfinite(bad) && bad > 1e300) continue;
      std::string message = RejectionMessage([&](SamplingParams& p) { p.*field.member = bad; });
      EXPECT_TRUE(message.starts_with(std::string(field.name) + ": ")) << field.name << bad << message;
    }
    for (double good : {field.low, field.high}) {
      EXPECT_EQ(RejectionMessage([&](SamplingParams& p) { p.*field.member = good; }), "") << field.name << good;
    }
  }
  EXPECT_EQ(RejectionMessage([](SamplingParams& p) { p.temperature = kNan; }), "temperature: outside 0 to 2 (nan)");
  EXPECT_EQ(RejectionMessage([](SamplingParams& p) { p.top_p = 0.0; }), "top_p: outside (0, 1] (0)");
  EXPECT_EQ(RejectionMessage([](SamplingParams& p) { p.top_p = std::numeric_limits<double>::denorm_min(); }), "");
}

TEST(SamplingParamsTest, IdsOutsideTheVocabularyAreRejectedInEveryField) {
  for (int32_t id : {-1, 100, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    std::string value = std::string("(").append(std::to_string(id)).append(")");
    auto check = [&](const char* field, const std::function<void(SamplingParams&)>& change) {
      std::string message = RejectionMessage(change);
      EXPECT_TRUE(message.starts_with(std::string(field) + ": token id outside 0 to 99 ")) << message;
      EXPECT_TRUE(message.ends_with(value)) << message;
    };
    check("logit_bias", [&](SamplingParams& p) { p.logit_bias = {{id, 1.0f}}; });
    check("stop_token_ids", [&](SamplingParams& p) { p.stop_token_ids = {1, id}; });
    check("allowed_token_ids", [&](SamplingParams& p) { p.allowed_token_ids = {id}; });
    check("bad_words", [&](SamplingParams& p) { p.bad_words_token_ids = {{1}, {2, id}}; });
    check("eos_token_id", [&](SamplingParams& p) { p.eos_token_id = id; });
  }
  EXPECT_EQ(RejectionMessage([](SamplingParams& p) {
              p.logit_bias = {{0, 1.0f}, {99, 1.0f}};
              p.stop_token_ids = {0, 99};
              p.allowed_token_ids = {0, 99};
            }),
            "");
}

TEST(SamplingParamsTest, OtherRejectionsNameTheFieldAndTheReason) {
  const std::pair<const char*, std::function<void(SamplingParams&)>> cases[] = {
      {"n: below 1 (0)", [](SamplingParams& p) { p.n = 0; }},
      {"n: above 128 (129)", [](SamplingParams& p) { p.n = 129; }},
      {"n: with temperature 0, must be 1 (2)",
       [](SamplingParams& p) {
         p.n = 2;
         p.temperature = 0.0;
       }},
      {"top_k: below -1 (-2)", [](SamplingParams& p) { p.top_k = -2; }},
      {"max_tokens: below 1 (0)", [](SamplingParams& p) { p.max_tokens = 0; }},
      {"min_tokens: below 0 (-1)", [](SamplingParams& p) { p.min_tokens = -1; }},
      {"min_tokens: above max_tokens 4 (5)",
       [](SamplingParams& p) {
         p.max_tokens = 4;
         p.min_tokens = 5;
       }},
      {"min_tokens: above max_model_len 512 (513)", [](SamplingParams& p) { p.min_tokens = 513; }},
      {"logprobs: above 20 (21)", [](SamplingParams& p) { p.logprobs = 21; }},
      {"logprobs: below -1 (-2)", [](SamplingParams& p) { p.logprobs = -2; }},
      {"prompt_logprobs: above 20 (21)", [](SamplingParams& p) { p.prompt_logprobs = 21; }},
      {"stop: string 2 is empty",
       [](SamplingParams& p) {
         p.stop = {"a", ""};
       }},
      {"stop: too many, limit 16 (17)", [](SamplingParams& p) { p.stop.assign(17, "x"); }},
      {"stop: longer than 256 bytes (257)", [](SamplingParams& p) { p.stop = {std::string(257, 'x')}; }},
      {"stop: needs detokenize (false)",
       [](SamplingParams& p) {
         p.stop = {"x"};
         p.detokenize = false;
       }},
      {"stop_token_ids: too many, limit 128 (129)", [](SamplingParams& p) { p.stop_token_ids.assign(129, 1); }},
      {"logit_bias: too many, limit 1024 (1025)",
       [](SamplingParams& p) {
         p.logit_bias.assign(1025, {1, 1.0f});
       }},
      {"logit_bias: not a number (nan)",
       [](SamplingParams& p) {
         p.logit_bias = {{1, std::nanf("")}};
       }},
      {"allowed_token_ids: empty (0)", [](SamplingParams& p) { p.allowed_token_ids.emplace(); }},
      {"allowed_token_ids: too many, limit 100 (101)", [](SamplingParams& p) { p.allowed_token_ids.emplace(101, 1); }},
      {"bad_words: longer than 256 bytes (257)", [](SamplingParams& p) { p.bad_words = {std::string(257, 'x')}; }},
      {"bad_words: string 1 is empty", [](SamplingParams& p) { p.bad_words = {""}; }},
      {"bad_words: too many, limit 1024 (1025)", [](SamplingParams& p) { p.bad_words.assign(1025, "x"); }},
  };
  for (const auto& [message, change] : cases) EXPECT_EQ(RejectionMessage(change), message);
}

TEST(SamplingParamsTest, FieldsAreConvertedToCanonicalForm) {
  SamplingParams params;
  params.top_k = -1;
  params.seed = std::numeric_limits<uint64_t>::max();
  params.logprobs = -1;
  params.logit_bias = {{5, 1000.0f}, {3, 1.0f}, {5, -1000.0f}};
  Normalize(params);
  EXPECT_EQ(params.top_k, 0);
  EXPECT_FALSE(params.seed);
  ASSERT_EQ(params.logit_bias.size(), 2u);
  EXPECT_EQ(params.logit_bias[0], (std::pair<int32_t, float>{3, 1.0f}));
  EXPECT_EQ(params.logit_bias[1], (std::pair<int32_t, float>{5, -100.0f}));
}

TEST(SamplingParamsTest, BeamSearchSetsItsDefaultsAndTurnsSamplingOff) {
  SamplingParams params;
  params.use_beam_search = true;
  params.temperature = 0.7;
  params.top_p = 0.5;
  params.repetition_penalty = 1.3;
  Normalize(params);
  EXPECT_EQ(params.beam_width, SamplingParams::kDefaultBeamWidth);
  EXPECT_EQ(params.length_penalty, 1.0);
  EXPECT_EQ(params.n, SamplingParams::kDefaultBeamWidth);
  EXPECT_TRUE(params.greedy());
  EXPECT_EQ(params.top_p, 1.0);
  EXPECT_EQ(params.repetition_penalty, 1.0);
  Normalize(params);  // again
  EXPECT_EQ(params.n, SamplingParams::kDefaultBeamWidth);

  SamplingParams wide;
  wide.use_beam_search = true;
  wide.n = 7;
  Normalize(wide);
  EXPECT_EQ(wide.beam_width, 7);
}

TEST(SamplingParamsTest, BeamSearchRejectsWhatItCannotDo) {
  const auto rejection = [](const std::function<void(SamplingParams&)>& change) {
    return RejectionMessage([&](SamplingParams& params) {
      params.use_beam_search = true;
      change(params);
    });
  };
  EXPECT_EQ(rejection([](auto& p) { p.stop = {"x"}; }), "stop: not possible with use_beam_search");
  EXPECT_EQ(rejection([](auto& p) { p.logprobs = 1; }), "logprobs: not possible with use_beam_search");
  EXPECT_EQ(rejection([](auto& p) { p.thinking_token_budget = 9; }),
            "thinking_token_budget: not possible with use_beam_search");
  EXPECT_EQ(rejection([](auto& p) { p.structured_outputs.emplace(); }),
            "structured_outputs: not possible with use_beam_search");
  EXPECT_EQ(rejection([](auto& p) {
              p.structured_outputs.emplace();
              p.structured_outputs->kind = StructuredOutputsParams::Kind::kToolCalls;
            }),
            "tools: not possible with use_beam_search");
  EXPECT_EQ(rejection([](auto& p) { p.best_of = 3; }), "best_of: not possible with use_beam_search (3)");
  EXPECT_EQ(rejection([](auto& p) { p.beam_width = 65; }), "beam_width: outside 1 to 64 (65)");
  EXPECT_EQ(rejection([](auto& p) { p.beam_width = 0; }), "beam_width: outside 1 to 64 (0)");
  EXPECT_EQ(rejection([](auto& p) { p.length_penalty = kNan; }), "length_penalty: outside -10 to 10 (nan)");
  EXPECT_EQ(rejection([](auto& p) {
              p.n = 3;
              p.beam_width = 2;
            }),
            "n: with use_beam_search, must be beam_width 2 (3)");
  EXPECT_EQ(RejectionMessage([](auto& p) { p.beam_width = 2; }), "beam_width: needs use_beam_search (2)");
  EXPECT_EQ(RejectionMessage([](auto& p) { p.length_penalty = 2; }), "length_penalty: needs use_beam_search (2)");
}

TEST(SamplingParamsTest, BestOfIsAtLeastNAndNeedsATemperature) {
  EXPECT_EQ(RejectionMessage([](auto& p) {
              p.n = 3;
              p.best_of = 2;
            }),
            "best_of: below 3 (2)");
  EXPECT_EQ(RejectionMessage([](auto& p) { p.best_of = 129; }), "best_of: above 128 (129)");
  EXPECT_EQ(RejectionMessage([](auto& p) {
              p.temperature = 0;
              p.best_of = 2;
            }),
            "best_of: with temperature 0, must be 1 (2)");
}

}  // namespace
}  // namespace vllm
