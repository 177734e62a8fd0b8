// Tests the encoding of the messages between ranks: every field arrives, and damaged messages are rejected.
#include "engine/distributed/wire.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/distributed/wire_archive.h"
#include "tests/distributed/random_messages.h"

namespace vllm {
namespace {

using testing_support::AddRandomOutput;
using testing_support::RandomRequest;

const SteadyTime kNow = std::chrono::steady_clock::now();

std::string OutputsMessage(uint32_t seed) {
  std::mt19937 random(seed);
  EngineCoreOutputs outputs;
  outputs.stats.num_running_reqs = 3;
  outputs.stats.kv_cache_usage = 0.5;
  outputs.stats.admission_paused = true;
  outputs.stats.spec_decoding.Add(SpeculativeMethod::kSuffix, 20, 3);
  for (int i = 0; i < 3; ++i) AddRandomOutput(random, kNow, outputs);
  return EncodeOutputs(outputs, kNow);
}

struct Case {
  std::string message;
  std::function<void(std::string_view)> decode;
};

std::vector<Case> Cases() {
  std::mt19937 random(7);
  const EngineCoreRequest request = RandomRequest(random, kNow);
  return {
      {EncodeHost({"node7", {0, 2, 5}, 64}), [](std::string_view m) { DecodeHost(m); }},
      {EncodeHello({"{}", 100, 4096, 1 << 30, 1.5, {"slow", "old"}}), [](std::string_view m) { DecodeHello(m); }},
      {EncodeFailed({FailureKind::kModel, "no such model", "pull it"}), [](std::string_view m) { DecodeFailed(m); }},
      {OutputsMessage(1),
       [](std::string_view m) {
         EngineCoreOutputs outputs;
         DecodeOutputs(m, kNow, outputs);
       }},
      {EncodeDied("out of memory"), [](std::string_view m) { DecodeDied(m); }},
      {EncodePlace({4, 2, 1}), [](std::string_view m) { DecodePlace(m); }},
      {EncodeAdd(request), [](std::string_view m) { DecodeAdd(m, kNow); }},
      {EncodeAbort(std::vector<RequestId>{1, 2, 3}, AbortUrgency::kPrompt), [](std::string_view m) { DecodeAbort(m); }},
      {EncodeAbortWithOutput(7), [](std::string_view m) { DecodeAbortWithOutput(m); }},
      {EncodeShutdown({ShutdownMode::kDrain, true}), [](std::string_view m) { DecodeShutdown(m); }},
      {EncodeFlag(MessageType::kPause, true), [](std::string_view m) { DecodeFlag(m); }},
  };
}

TEST(WireTest, ExampleOfTheHeaderIsExact) {
  const std::string example("\x22\x00\x02\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00",
                            22);
  EXPECT_EQ(EncodeAbort(std::vector<RequestId>{7, 8}, AbortUrgency::kAfterStep), example);
}

TEST(WireTest, EveryFieldOfARequestArrives) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const EngineCoreRequest request = RandomRequest(random, kNow);
    const std::string message = EncodeAdd(request);
    const AddMessage add = DecodeAdd(message, std::chrono::steady_clock::now());
    const EngineCoreRequest& decoded = *add.request;
    EXPECT_EQ(decoded.request_id, request.request_id);
    EXPECT_EQ(decoded.prompt_token_ids, request.prompt_token_ids);
    EXPECT_EQ(decoded.prior_output_token_ids, request.prior_output_token_ids);
    EXPECT_EQ(decoded.priority, request.priority);
    EXPECT_EQ(decoded.cache_salt, request.cache_salt);
    EXPECT_EQ(decoded.interactive, request.interactive);
    EXPECT_EQ(decoded.external_req_id, request.external_req_id);
    const SamplingParams& a = decoded.sampling_params;
    const SamplingParams& b = request.sampling_params;
    EXPECT_EQ(a.n, b.n);
    EXPECT_EQ(a.presence_penalty, b.presence_penalty);
    EXPECT_EQ(a.frequency_penalty, b.frequency_penalty);
    EXPECT_EQ(a.repetition_penalty, b.repetition_penalty);
    EXPECT_EQ(a.temperature, b.temperature);
    EXPECT_EQ(a.top_p, b.top_p);
    EXPECT_EQ(a.top_k, b.top_k);
    EXPECT_EQ(a.min_p, b.min_p);
    EXPECT_EQ(a.seed, b.seed);
    EXPECT_EQ(a.stop, b.stop);
    EXPECT_EQ(a.stop_token_ids, b.stop_token_ids);
    EXPECT_EQ(a.ignore_eos, b.ignore_eos);
    EXPECT_EQ(a.max_tokens, b.max_tokens);
    EXPECT_EQ(a.min_tokens, b.min_tokens);
    EXPECT_EQ(a.logprobs, b.logprobs);
    EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
    EXPECT_EQ(a.detokenize, b.detokenize);
    EXPECT_EQ(a.skip_special_tokens, b.skip_special_tokens);
    EXPECT_EQ(a.include_stop_str_in_output, b.include_stop_str_in_output);
    EXPECT_EQ(a.output_kind, b.output_kind);
    EXPECT_EQ(a.logit_bias, b.logit_bias);
    EXPECT_EQ(a.allowed_token_ids, b.allowed_token_ids);
    EXPECT_EQ(a.bad_words, b.bad_words);
    EXPECT_EQ(a.skip_reading_prefix_cache, b.skip_reading_prefix_cache);
    EXPECT_EQ(a.thinking_token_budget, b.thinking_token_budget);
    ASSERT_EQ(a.structured_outputs.has_value(), b.structured_outputs.has_value());
    EXPECT_TRUE(a.structured_outputs == b.structured_outputs);
    EXPECT_EQ(a.bad_words_token_ids, b.bad_words_token_ids);
    EXPECT_EQ(a.eos_token_id, b.eos_token_id);
    EXPECT_FALSE(add.has_reasoning_format);
  }
}

TEST(WireTest, EncodingWhatWasDecodedGivesTheSameBytes) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const std::string message = OutputsMessage(seed);
    EngineCoreOutputs outputs;
    DecodeOutputs(message, kNow, outputs);
    EXPECT_EQ(EncodeOutputs(outputs, kNow), message);
  }
}

TEST(WireTest, TimesMoveWithTheClockOfTheReader) {
  EngineCoreOutputs outputs;
  outputs.Add(1).scheduled_time = kNow - std::chrono::seconds(3);
  EngineCoreOutputs decoded;
  DecodeOutputs(EncodeOutputs(outputs, kNow), kNow + std::chrono::hours(1), decoded);
  EXPECT_EQ(decoded[0].scheduled_time, kNow + std::chrono::hours(1) - std::chrono::seconds(3));
  EXPECT_EQ(decoded[0].first_token_time, SteadyTime());
}

TEST(WireTest, AMessageThatIsCutOffIsRejectedAtEveryByte) {
  for (const Case& c : Cases()) {
    c.decode(c.message);
    for (size_t size = 1; size < c.message.size(); ++size) {
      EXPECT_THROW(c.decode(std::string_view(c.message).substr(0, size)), WireError) << size;
    }
  }
}

TEST(WireTest, BytesAfterTheEndAreRejected) {
  for (const Case& c : Cases()) EXPECT_THROW(c.decode(c.message + '\0'), WireError);
}

TEST(WireTest, ChangedBytesNeverCrashTheReader) {
  std::mt19937 random(11);
  for (const Case& c : Cases()) {
    for (int round = 0; round < 2000; ++round) {
      std::string message = c.message;
      for (size_t i = 1 + random() % 3; i > 0; --i)
        message[1 + random() % (message.size() - 1)] = static_cast<char>(random());
      try {
        c.decode(message);
      } catch (const WireError&) {
      }
    }
  }
}

TEST(WireTest, UnknownTypesAreRejected) {
  EXPECT_THROW(TypeOf(""), WireError);
  for (const char type : {0, 8, 31, 39, 127}) EXPECT_THROW(TypeOf(std::string(1, type)), WireError);
  for (const Case& c : Cases()) TypeOf(c.message);
}

TEST(WireTest, AnotherVersionIsNamed) {
  std::string message = EncodeHost({"a", {}, 0});
  message[1] = 99;
  try {
    DecodeHost(message);
    ADD_FAILURE() << "no exception";
  } catch (const WireError& error) {
    EXPECT_EQ(error.what(), "it sent a damaged message: it is from another version of vllmcli (format 99, not " +
                                std::to_string(kWireVersion) + ")");
  }
}

TEST(WireTest, LogprobsWithoutTheirPositionsAreRejected) {
  EngineCoreOutputs outputs;
  EngineCoreOutput& output = outputs.Add(1);
  output.new_token_ids = {1};
  output.new_logprobs.width = 2;
  output.new_logprobs.token_ids = {1, 2};
  output.new_logprobs.logprobs = {-1.0f};
  output.new_logprobs.ranks = {1};
  EngineCoreOutputs decoded;
  EXPECT_THROW(DecodeOutputs(EncodeOutputs(outputs, kNow), kNow, decoded), WireError);
}

}  // namespace
}  // namespace vllm
