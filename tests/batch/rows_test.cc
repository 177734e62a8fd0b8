// Tests what decides which rows of an input run: FinishedRows, RowSelection, IdSet and InputScan.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>

#include "app/batch/input/id_set.h"
#include "app/batch/input/record_reader.h"
#include "app/batch/input/row_selection.h"
#include "app/batch/input_scan.h"
#include "app/batch/job/finished_rows.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

JobEntry Entry(int64_t index, uint64_t digest, const std::string& id = "") {
  JobEntry entry;
  entry.index = index;
  entry.digest = digest;
  if (!id.empty()) entry.id = HashBytes128(id);
  return entry;
}

TEST(FinishedRowsTest, ARowIsRecognizedByItsIndexAndDigestOrByItsId) {
  using Match = FinishedRows::Match;
  FinishedRows rows;
  rows.Add(Entry(5, 50));
  rows.Add(Entry(2, 20, "b"));
  rows.Add(Entry(0, 10, "a"));
  rows.Sort();
  bool was_openai = false;
  EXPECT_FALSE(rows.HasRow(1, 10, was_openai));
  EXPECT_TRUE(rows.HasRow(2, 20, was_openai));
  EXPECT_TRUE(rows.HasRow(5, 50, was_openai));
  EXPECT_FALSE(rows.HasRow(0, 99, was_openai));
  EXPECT_EQ(rows.Find(7, 10, HashBytes128("a")), Match::kFinished);
  // HasRow has found the row of b, so another one is a duplicate and not a change.
  EXPECT_EQ(rows.Find(8, 21, HashBytes128("b")), Match::kNew);
  EXPECT_EQ(rows.Find(9, 1, HashBytes128("c")), Match::kNew);
  EXPECT_EQ(rows.Find(3, 1, std::nullopt), Match::kNew);
}

TEST(FinishedRowsTest, AChangedRowIsFoundByItsIdOrIndex) {
  using Match = FinishedRows::Match;
  FinishedRows rows;
  rows.Add(Entry(0, 10, "a"));
  rows.Add(Entry(1, 20));
  rows.Sort();
  EXPECT_EQ(rows.Find(4, 11, HashBytes128("a")), Match::kChanged);
  EXPECT_EQ(rows.Find(1, 21, std::nullopt), Match::kChanged);
  EXPECT_EQ(rows.Find(0, 21, std::nullopt), Match::kNew);
}

TEST(IdSetTest, BehavesLikeASet) {
  IdSet ids;
  std::set<std::pair<uint64_t, uint64_t>> expected;
  std::mt19937_64 random(3);
  for (int i = 0; i < 100'000; ++i) {
    const Hash128 hash = {random() % 300, random() % 300};
    EXPECT_EQ(ids.Insert(hash), expected.insert({hash.lo, hash.hi}).second);
  }
}

TEST(RowSelectionTest, ShardsPartitionTheRowsOfASample) {
  std::map<int64_t, int> counts;
  for (int64_t shard = 0; shard < 3; ++shard) {
    RowSelection selection;
    selection.SetShard({shard, 3});
    selection.SetSample(100, 1000, 9);
    for (int64_t i = 0; i < 1000; ++i) counts[i] += selection.Selects(i) ? 1 : 0;
  }
  int total = 0;
  for (const auto& [index, count] : counts) {
    EXPECT_LE(count, 1);
    total += count;
  }
  EXPECT_EQ(total, 100);
}

TEST(RowSelectionTest, ALimitCountsTheRowsThatTheOthersSelect) {
  RowSelection selection;
  selection.SetShard({1, 2});
  selection.SetLimit(2);
  std::string rows;
  for (int64_t i = 0; i < 9; ++i) rows += selection.Selects(i) ? '1' : '0';
  EXPECT_EQ(rows, "010100000");
  EXPECT_TRUE(selection.IsComplete());
}

TEST(RowSelectionTest, InvalidShardsAreRejected) {
  for (const char* text : {"", "1", "/", "1/", "/2", "2/2", "-1/2", "1/0", "a/b", "1/2/3"}) {
    EXPECT_THROW(ParseShard(text), ConfigError) << text;
  }
  EXPECT_EQ(ParseShard("3/4").index, 3);
  EXPECT_EQ(ParseShard("3/4").count, 4);
}

// Counts rows as RowSource does.
int64_t NumRows(const std::string& text, char delimiter) {
  const int fd = memfd_create("rows", 0);
  EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  lseek(fd, 0, SEEK_SET);
  RecordReader reader(fd, "rows", delimiter);
  int64_t count = delimiter == '\0' ? 0 : -1;
  bool has_records = false;
  std::string_view record;
  for (auto status = reader.Next(record); status != RecordSource::Status::kEnd; status = reader.Next(record)) {
    if (status == RecordSource::Status::kNeedInput) {
      reader.Fill();
    } else if (record.find_first_not_of(" \t\r") != std::string_view::npos) {
      ++count;
      has_records = true;
    }
  }
  const std::atomic<bool> stops = false;
  const std::optional<JobInput> input = ScanInput(fd, {delimiter}, stops);
  close(fd);
  EXPECT_EQ(input->num_bytes, static_cast<int64_t>(text.size()));
  EXPECT_EQ(input->digest, Hash64(text));
  EXPECT_EQ(input->num_rows, has_records ? count : 0) << testing::PrintToString(text);
  return input->num_rows;
}

TEST(InputScanTest, CountsTheRowsThatTheReaderFinds) {
  std::mt19937 random(1);
  const std::string alphabet = "ab,\t \r\n\n\"\"";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t length = random() % 40; length > 0; --length) text += alphabet[random() % alphabet.size()];
    NumRows(text, '\0');
    NumRows(text, ',');
    NumRows(text, '\t');
  }
  EXPECT_EQ(NumRows("a\n\"b\n\nc\"\nd\n", ','), 2);
}

}  // namespace
}  // namespace vllm::app
