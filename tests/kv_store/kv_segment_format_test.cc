#include "engine/kv_store/kv_segment_format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace vllm {
namespace {

KVSegmentHeader Example() {
  KVSegmentHeader header;
  header.identity = {1, 2};
  header.id = 3;
  header.payload_bytes = 114688;
  header.block_size = 16;
  header.num_slots = 584;
  return header;
}

TEST(KVSegmentFormatTest, ExampleInTheHeaderIsCorrect) {
  const KVSegmentHeader header = Example();
  EXPECT_EQ(KVSlotsFor(uint64_t{64} << 20, 114688, 16), 584u);
  EXPECT_EQ(header.HeadBytes(), 144u);
  EXPECT_EQ(header.HeadOffset(3), 560u);
  EXPECT_EQ(header.HeadOffset(584), 84224u);
  EXPECT_EQ(header.PayloadOffset(0), 86016u);
  EXPECT_EQ(header.PayloadOffset(3), 430080u);
  EXPECT_EQ(header.FileBytes(), 67063808u);
}

TEST(KVSegmentFormatTest, SegmentHasAtLeastOneSlotAndFitsIntoItsSize) {
  for (const uint64_t payload_bytes : {uint64_t{1}, uint64_t{4096}, uint64_t{100000}, kMaxKVPayloadBytes}) {
    for (const uint64_t segment_bytes : {uint64_t{0}, uint64_t{5000}, uint64_t{1} << 20, uint64_t{64} << 20}) {
      KVSegmentHeader header = Example();
      header.payload_bytes = payload_bytes;
      header.num_slots = KVSlotsFor(segment_bytes, payload_bytes, header.block_size);
      EXPECT_GE(header.num_slots, 1u);
      EXPECT_LE(header.num_slots, kMaxKVSlots);
      if (header.num_slots > 1) {
        EXPECT_LE(header.FileBytes(), segment_bytes);
      }
    }
  }
}

TEST(KVSegmentFormatTest, SlotCountOfAFileCountsCompletePayloadsOnly) {
  const KVSegmentHeader header = Example();
  EXPECT_EQ(header.NumSlotsWithin(0), 0u);
  EXPECT_EQ(header.NumSlotsWithin(header.PayloadOffset(1) - 1), 0u);
  EXPECT_EQ(header.NumSlotsWithin(header.PayloadOffset(1)), 1u);
  EXPECT_EQ(header.NumSlotsWithin(header.FileBytes()), 584u);
  EXPECT_EQ(header.NumSlotsWithin(~uint64_t{0}), 584u);
}

TEST(KVSegmentFormatTest, DecodedHeaderEqualsTheEncodedOne) {
  KVSegmentHeader header = Example();
  const auto bytes = EncodeKVHeader(header);
  const std::optional<KVSegmentHeader> decoded = DecodeKVHeader(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->identity, header.identity);
  EXPECT_EQ(decoded->id, header.id);
  EXPECT_EQ(decoded->payload_bytes, header.payload_bytes);
  EXPECT_EQ(decoded->block_size, header.block_size);
  EXPECT_EQ(decoded->num_slots, header.num_slots);
  EXPECT_EQ(decoded->checksum, header.checksum);
}

TEST(KVSegmentFormatTest, HeaderWithACorrectChecksumButValuesOutOfRangeIsRejected) {
  const auto is_valid = [](auto change) {
    KVSegmentHeader header = Example();
    change(header);
    return DecodeKVHeader(EncodeKVHeader(header)).has_value();
  };
  EXPECT_TRUE(is_valid([](KVSegmentHeader&) {}));
  EXPECT_FALSE(is_valid([](KVSegmentHeader& header) { header.block_size = 0; }));
  EXPECT_FALSE(is_valid([](KVSegmentHeader& header) { header.block_size = kMaxKVBlockSize + 1; }));
  EXPECT_FALSE(is_valid([](KVSegmentHeader& header) { header.num_slots = 0; }));
  EXPECT_FALSE(is_valid([](KVSegmentHeader& header) { header.num_slots = kMaxKVSlots + 1; }));
  EXPECT_FALSE(is_valid([](KVSegmentHeader& header) { header.payload_bytes = 0; }));
  EXPECT_FALSE(is_valid([](KVSegmentHeader& header) { header.payload_bytes = kMaxKVPayloadBytes + 1; }));
}

TEST(KVSegmentFormatTest, OtherVersionIsRejected) {
  KVSegmentHeader header = Example();
  auto bytes = EncodeKVHeader(header);
  const uint32_t version = kKVSegmentVersion + 1;
  std::memcpy(bytes.data() + 8, &version, sizeof(version));
  const uint64_t checksum = Hash64({reinterpret_cast<const char*>(bytes.data()), 120});
  std::memcpy(bytes.data() + 120, &checksum, sizeof(checksum));
  EXPECT_FALSE(DecodeKVHeader(bytes));
}

TEST(KVSegmentFormatTest, HeadIsValidOnlyInItsOwnSegment) {
  KVSegmentHeader header = Example();
  EncodeKVHeader(header);
  KVSegmentHeader other = Example();
  other.id = 4;
  EncodeKVHeader(other);
  const std::vector<int32_t> token_ids(16, 7);
  const KVBlockKey key{{1, 2}, {3, 4}, token_ids, "salt"};
  const std::vector<std::byte> payload(header.payload_bytes);
  std::vector<std::byte> bytes(header.HeadBytes());
  EncodeKVHead(header, key, payload, bytes);
  const std::optional<KVSlotHead> head = DecodeKVHead(header, bytes);
  ASSERT_TRUE(head);
  EXPECT_TRUE(head->Matches(key));
  EXPECT_FALSE(DecodeKVHead(other, bytes));
}

TEST(KVSegmentFormatTest, HeadMatchesOnlyItsKey) {
  KVSegmentHeader header = Example();
  EncodeKVHeader(header);
  const std::vector<int32_t> token_ids(16, 7);
  std::vector<int32_t> other_token_ids = token_ids;
  other_token_ids.back() = 8;
  const KVBlockKey key{{1, 2}, {3, 4}, token_ids, "salt"};
  std::vector<std::byte> bytes(header.HeadBytes());
  EncodeKVHead(header, key, std::vector<std::byte>(header.payload_bytes), bytes);
  const std::optional<KVSlotHead> head = DecodeKVHead(header, bytes);
  ASSERT_TRUE(head);
  EXPECT_FALSE(head->Matches({{1, 3}, {3, 4}, token_ids, "salt"}));
  EXPECT_FALSE(head->Matches({{1, 2}, {3, 5}, token_ids, "salt"}));
  EXPECT_FALSE(head->Matches({{1, 2}, {3, 4}, other_token_ids, "salt"}));
  EXPECT_FALSE(head->Matches({{1, 2}, {3, 4}, std::span(token_ids).first(15), "salt"}));
  EXPECT_FALSE(head->Matches({{1, 2}, {3, 4}, token_ids, "pepper"}));
}

}  // namespace
}  // namespace vllm
