// Tests the encoding of traces, and that damaged traces are detected.
#include "engine/trace/trace_format.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/config/errors.h"
#include "engine/trace/sip_hash.h"
#include "tests/trace/trace_test_util.h"

namespace vllm {
namespace {

std::string Bytes(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); ++i) {
    if (hex[i] == ' ') continue;
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
    ++i;
  }
  return bytes;
}

// The example of trace_format.h.
std::string Example() {
  return Bytes(
      "76 6c 6c 6d 63 6c 69 2d 74 72 61 63 65 20 33 0a"
      "12 01 03 30 2e 31 02 08 00 01 00 01 10 01 0a 00 40 01 00 80 1a c9 70"
      "09 02 02 03 00 03 00 00 00 01 a7 8f 45 73"
      "0b 05 00 01 00 00 01 02 15 00 01 00 99 13 0e 7d"
      "03 06 07 00 b1 be fa 13"
      "08 05 09 01 00 00 01 02 08 24 ae cd 65"
      "05 06 07 01 02 20 a5 87 c8 e2");
}

TEST(SipHashTest, HasTheValuesOfThePaper) {
  const SipKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  EXPECT_EQ(SipHash(key, ""), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(SipHash(key, Bytes("00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e")), 0xa129ca6149be45e5u);
}

TEST(TraceFormatTest, ExampleOfTheHeaderIsATraceOfThatRun) {
  const std::vector<TraceRecord> records = RecordsOf(Example());
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[0].begin.program_version, "0.1");
  EXPECT_EQ(records[0].begin.scheduler.max_num_batched_tokens, 2);
  EXPECT_EQ(records[0].begin.max_model_len, 64);
  EXPECT_EQ(records[1].add.num_prompt_tokens, 3);
  EXPECT_EQ(records[2].step.scheduled[0].num_tokens, 2);
  EXPECT_EQ(records[2].step.block_ids, (std::vector<int32_t>{1}));
  EXPECT_EQ(records[4].step.elapsed_us, 9);
  EXPECT_EQ(BytesOf(records), Example());
  EXPECT_EQ(ReplayOf(Example()).difference, "");
  EXPECT_EQ(ReplayOf(Example()).num_steps, 2);
}

TEST(TraceFormatTest, ExtremeValuesSurvive) {
  TraceRecord record, read;
  record.type = TraceRecordType::kAdd;
  record.add.request_id = std::numeric_limits<RequestId>::max();
  record.add.priority = std::numeric_limits<int64_t>::min();
  record.add.arrival_ns = std::numeric_limits<int64_t>::max();
  record.add.prompt_logprobs = true;
  record.add.interactive = true;
  record.add.tags = {0, std::numeric_limits<uint64_t>::max()};
  std::string payload;
  EncodeTraceRecord(record, payload);
  DecodeTraceRecord(payload, read);
  EXPECT_EQ(read.add.request_id, record.add.request_id);
  EXPECT_EQ(read.add.priority, record.add.priority);
  EXPECT_EQ(read.add.arrival_ns, record.add.arrival_ns);
  EXPECT_TRUE(read.add.prompt_logprobs);
  EXPECT_TRUE(read.add.interactive);
  EXPECT_FALSE(read.add.accepted);
  EXPECT_EQ(read.add.tags, record.add.tags);
}

TEST(TraceFormatTest, TraceThatIsCutAnywhereIsValidUpToThere) {
  const std::string bytes = BusyTrace();
  const size_t num_records = RecordsOf(bytes).size();
  const int64_t num_steps = ReplayOf(bytes).num_steps;
  size_t num_whole = 0, num_unusable = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string_view cut = std::string_view(bytes).substr(0, size);
    try {
      TraceReader reader(TraceBytes(cut));
      const ReplayResult result = ReplayTrace(reader);
      ASSERT_EQ(result.difference, "") << size;
      ASSERT_FALSE(result.has_end) << size;
      ASSERT_LE(result.num_steps, num_steps) << size;
      num_whole += reader.num_torn_bytes() == 0;
    } catch (const ModelError&) {
      ++num_unusable;
    }
  }
  EXPECT_EQ(num_whole, num_records - 1);
  // The header and the first record.
  EXPECT_LT(num_unusable, 60u);
}

TEST(TraceFormatTest, DamageOfAnyByteIsDetected) {
  const std::string bytes = BusyTrace();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    size_t num_torn_bytes = 0;
    const std::string why = MessageOf<ModelError>([&] {
      TraceReader reader(TraceBytes(damaged));
      TraceRecord record;
      while (reader.Next(record)) {
      }
      num_torn_bytes = reader.num_torn_bytes();
    });
    // A longer length may reach beyond the end.
    ASSERT_TRUE(!why.empty() || num_torn_bytes > 0) << i;
  }
}

TEST(TraceFormatTest, OtherFilesAndVersionsAreUnusable) {
  const auto why = [](std::string_view bytes) {
    return MessageOf<ModelError>([bytes] { TraceReader reader(TraceBytes(bytes)); });
  };
  EXPECT_EQ(why(""), "is empty");
  EXPECT_EQ(why("{\"prompt\": \"x\"}\n{}\n{}\n"), "is not a trace of vllmcli");
  EXPECT_EQ(why("vllmcli-trace 1\nabcdefgh"), "has version 1 of the format (this program reads version 3)");
  EXPECT_EQ(why("vllmcli-trace x\n"), "is not a trace of vllmcli");
  EXPECT_EQ(why("vllmcli-trace 3\n"), "ends before the end of its first record");
  EXPECT_EQ(why("vllmcli-trace 3\n\xff\xff\xff\xff\xff\xff"), "record 1 at byte 16: length out of range");
}

TEST(TraceFormatTest, LengthsBeyondTheRecordAreErrors) {
  TraceRecord record;
  const auto why = [&record](std::string_view hex) {
    return MessageOf<ModelError>([&] { DecodeTraceRecord(Bytes(hex), record); });
  };
  EXPECT_EQ(why(""), "record without a type");
  EXPECT_EQ(why("0b"), "unknown record type (11)");
  EXPECT_EQ(why("05"), "record too short");
  EXPECT_EQ(why("05 00 00 ff ff ff 7f"), "list longer than the record");
  EXPECT_EQ(why("05 00 00 00 00 01 02 84 01 ff ff 03"), "list longer than the record");
  EXPECT_EQ(why("06 00 01 02 28 01"), "list longer than the record");
  EXPECT_EQ(why("06 00 01 02 90 ff 7f"), "too many tokens of a request");
  EXPECT_EQ(why("02 02 03 00 00 00 00 00 01 11 22"), "incomplete item at the end");
  EXPECT_EQ(why("07 ff ff ff ff ff ff ff ff ff 7f"), "number longer than 64 bits");
  EXPECT_EQ(why("08 00"), "superfluous bytes at the end of the record");
  EXPECT_EQ(why("03 00 01 02"), "a request that finished without a reason");
}

}  // namespace
}  // namespace vllm
