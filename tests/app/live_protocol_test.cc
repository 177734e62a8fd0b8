// Tests that both sides of the live protocol reject invalid messages, and that frames survive the conversion to JSON
// and back.
#include "app/live/live_protocol.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/live/live_frame.h"
#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr LiveMessageType kCommand = LiveMessageType::kCommand;

TEST(LiveProtocolTest, MessageHasTheDocumentedBytes) {
  EXPECT_EQ(EncodeLiveMessage(kCommand, R"({"command":"pause"})"),
            std::string("VLLV\x01\x00\x02\x00\x13\x00\x00\x00", 12) + R"({"command":"pause"})");
}

TEST(LiveProtocolTest, MessagesMayArriveInPiecesOfAnySize) {
  const std::string stream =
      EncodeLiveMessage(kCommand, "one") + EncodeLiveMessage(kCommand, "") + EncodeLiveMessage(kCommand, "three");
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    LiveMessageReader reader(kCommand, 100);
    std::vector<std::string> messages;
    for (size_t i = 0; i < stream.size(); i += piece) {
      ASSERT_TRUE(reader.Feed(std::string_view(stream).substr(i, piece)));
      while (std::optional<std::string> message = reader.Next()) messages.push_back(*message);
    }
    EXPECT_EQ(messages, (std::vector<std::string>{"one", "", "three"}));
  }
}

TEST(LiveProtocolTest, CutMessageIsNotReturned) {
  const std::string message = EncodeLiveMessage(kCommand, "payload");
  for (size_t size = 0; size < message.size(); ++size) {
    LiveMessageReader reader(kCommand, 100);
    EXPECT_TRUE(reader.Feed(std::string_view(message).substr(0, size)));
    EXPECT_EQ(reader.Next(), std::nullopt);
  }
}

TEST(LiveProtocolTest, WrongByteInTheHeaderEndsTheStream) {
  const std::string good = EncodeLiveMessage(kCommand, "payload");
  // The low bytes of the length are left out: another small length is a valid header.
  for (const size_t i : {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11}) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    LiveMessageReader reader(kCommand, 100);
    EXPECT_FALSE(reader.Feed(bad)) << i;
    EXPECT_EQ(reader.Next(), std::nullopt);
    EXPECT_FALSE(reader.Feed(good));
    EXPECT_EQ(reader.has_other_version(), i == 4 || i == 5);
  }
}

TEST(LiveProtocolTest, OversizeMessageIsRejectedAtItsHeader) {
  LiveMessageReader reader(kCommand, 100);
  EXPECT_FALSE(reader.Feed(EncodeLiveMessage(kCommand, std::string(101, 'x')).substr(0, kLiveHeaderBytes)));
}

TEST(LiveProtocolTest, BadMessageAfterAGoodOneEndsTheStream) {
  LiveMessageReader reader(kCommand, 100);
  EXPECT_TRUE(reader.Feed(EncodeLiveMessage(kCommand, "good") + "garbage garbage"));
  EXPECT_EQ(reader.Next(), "good");
  EXPECT_EQ(reader.Next(), std::nullopt);
  EXPECT_FALSE(reader.Feed("x"));
}

TEST(LiveProtocolTest, CommandsSurviveTheRoundTrip) {
  for (const LiveCommand& command : {LiveCommand{LiveAction::kWatch, 250, 7}, LiveCommand{LiveAction::kPause, 0, 0},
                                     LiveCommand{LiveAction::kResume, 0, 0}, LiveCommand{LiveAction::kAbort, 0, 12}}) {
    const std::optional<LiveCommand> read = ParseLiveCommand(LiveCommandText(command));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->action, command.action);
    EXPECT_EQ(read->interval_ms, command.interval_ms);
    EXPECT_EQ(read->request_id, command.request_id);
  }
}

TEST(LiveProtocolTest, InvalidCommandsAreRejected) {
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"command":7})", R"({"command":"quit"})", R"({"command":"abort"})",
        R"({"command":"abort","id":-1})", R"({"command":"abort","id":"1"})", R"({"command":"abort","id":1.5})",
        R"({"command":"watch"})", R"({"command":"watch","interval_ms":-1,"detail":0})",
        R"({"command":"watch","interval_ms":1e99,"detail":0})"}) {
    EXPECT_EQ(ParseLiveCommand(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseLiveCommand(std::string(1000, '[')), std::nullopt);
}

LiveFrame MakeFrame() {
  LiveFrame frame;
  frame.process = {.pid = 12, .command = "chat", .model = "m", .dtype = "float32", .max_model_len = 99};
  frame.engine.time = SteadyTime(std::chrono::milliseconds(1500));
  frame.engine.scheduler.num_prompt_tokens = 77;
  frame.engine.scheduler.spec_decoding.Add(SpeculativeMethod::kNgram, 20, 3);
  frame.engine.scheduler.spec_decoding.Add(SpeculativeMethod::kGrammar, 2, 2);
  frame.engine.rank_times = {Seconds(1), Seconds(2)};
  frame.engine.requests.resize(2);
  frame.engine.requests[0].request_id = 5;
  frame.engine.requests[0].external_req_id = "row-5";
  frame.engine.requests[0].status = RequestStatus::kPreempted;
  frame.engine.requests[1].priority = -3;
  frame.engine.requests[1].time_to_first_token = Seconds(0.5);
  frame.prompts = {"a\nb", "\x1b[31m"};
  frame.engine.kv_blocks = {0, 0, 1, 2, 2, 4, 5, 5, 5, 0};
  frame.batch.emplace().num_rows = 100;
  frame.batch->time_left = Seconds(9);
  frame.batch->errors = {{3, "bad"}};
  frame.detail = LiveDetail{5, "p", "o"};
  return frame;
}

TEST(LiveFrameTest, FrameSurvivesTheRoundTrip) {
  const LiveFrame frame = MakeFrame();
  Json json;
  ASSERT_EQ(ParseJsonText(DumpJson(LiveFrameJson(frame)), json), "");
  LiveFrame read;
  ASSERT_TRUE(ReadLiveFrame(json, read));
  EXPECT_EQ(LiveFrameJson(read), LiveFrameJson(frame));
  EXPECT_EQ(read.engine.kv_blocks, frame.engine.kv_blocks);
  EXPECT_EQ(read.engine.time, frame.engine.time);
  EXPECT_EQ(read.engine.scheduler.spec_decoding.Total().num_accepted_tokens, 5);
  EXPECT_EQ(read.engine.requests[0].status, RequestStatus::kPreempted);
  EXPECT_EQ(read.engine.requests[1].priority, -3);
  EXPECT_LT(read.engine.requests[0].time_to_first_token, Seconds(0));
}

// Calls `check(json)` with copies of `json` in which one value, at any depth, is replaced or removed.
template <typename Check>
void ForEachChange(const Json& json, Check&& check) {
  const Json flat = json.flatten();
  for (const auto& [path, value] : flat.items()) {
    const Json::json_pointer pointer(path);
    for (const Json& other : {Json("text"), Json(-1), Json(1e300), Json(uint64_t{1} << 63), Json::array({1, 2, 3}),
                              Json::object(), Json(true), Json()}) {
      Json changed = json;
      changed[pointer] = other;
      check(path, changed);
    }
  }
}

TEST(LiveFrameTest, ChangedFramesAreRejectedOrRead) {
  ForEachChange(LiveFrameJson(MakeFrame()), [](const std::string& path, const Json& json) {
    LiveFrame frame;
    if (!ReadLiveFrame(json, frame)) return;
    EXPECT_LE(frame.engine.requests.size(), EngineSnapshot::kMaxRequests) << path;
    EXPECT_EQ(frame.prompts.size(), frame.engine.requests.size()) << path;
    for (const uint16_t state : frame.engine.kv_blocks) {
      EXPECT_LT(state, EngineSnapshot::kFirstRequest + frame.engine.requests.size()) << path;
    }
  });
}

TEST(LiveFrameTest, BlockRunsMustFitIntoTheMap) {
  Json json = LiveFrameJson(MakeFrame());
  LiveFrame frame;
  json["kv_blocks"] = {0u, EngineSnapshot::kMaxCells};
  EXPECT_TRUE(ReadLiveFrame(json, frame));
  json["kv_blocks"] = {0u, EngineSnapshot::kMaxCells + 1};
  EXPECT_FALSE(ReadLiveFrame(json, frame));
  json["kv_blocks"] = {0u, uint64_t{1} << 62};
  EXPECT_FALSE(ReadLiveFrame(json, frame));
  json["kv_blocks"] = {6u, 1u};
  EXPECT_FALSE(ReadLiveFrame(json, frame));
  json["kv_blocks"] = {0u};
  EXPECT_FALSE(ReadLiveFrame(json, frame));
}

TEST(LiveFrameTest, MissingFieldIsRejected) {
  const Json json = LiveFrameJson(MakeFrame());
  for (const auto& [name, value] : json.items()) {
    Json changed = json;
    changed.erase(name);
    LiveFrame frame;
    EXPECT_FALSE(ReadLiveFrame(changed, frame)) << name;
    if (!value.is_object() || name == "detail") continue;
    for (const auto& [field, unused] : value.items()) {
      changed = json;
      changed[name].erase(field);
      EXPECT_FALSE(ReadLiveFrame(changed, frame)) << name << "." << field;
    }
  }
}

TEST(LiveFrameTest, TooManyRequestsAreRejected) {
  Json json = LiveFrameJson(MakeFrame());
  const Json request = json["requests"][0];
  json["kv_blocks"] = Json::array();
  while (json["requests"].size() < EngineSnapshot::kMaxRequests) json["requests"].push_back(request);
  LiveFrame frame;
  EXPECT_TRUE(ReadLiveFrame(json, frame));
  json["requests"].push_back(request);
  EXPECT_FALSE(ReadLiveFrame(json, frame));
}

}  // namespace
}  // namespace vllm::app
