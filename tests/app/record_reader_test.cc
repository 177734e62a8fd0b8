#include "app/batch/input/record_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "app/batch/table/csv.h"
#include "app/batch/table/row_template.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

struct ReadResult {
  std::vector<std::string> records;
  std::vector<int64_t> lines;
};

// Sends `text` through a pipe, `piece` bytes per write. Returns the records that the reader finds and their line
// numbers. A record that is too long is returned as "TOO LONG".
ReadResult ReadAll(const std::string& text, char delimiter, size_t piece, size_t max_bytes = 1 << 20) {
  int fds[2];
  if (pipe(fds) != 0) return {};
  std::thread writer([&] {
    for (size_t pos = 0; pos < text.size(); pos += piece) {
      const std::string part = text.substr(pos, piece);
      if (write(fds[1], part.data(), part.size()) < 0) break;
    }
    close(fds[1]);
  });
  RecordReader reader(fds[0], "pipe", delimiter, max_bytes);
  ReadResult result;
  std::string_view record;
  while (true) {
    const RecordReader::Status status = reader.Next(record);
    if (status == RecordReader::Status::kEnd) break;
    if (status == RecordReader::Status::kNeedInput) {
      reader.Fill();
      continue;
    }
    result.records.push_back(status == RecordReader::Status::kTooLong ? "TOO LONG" : std::string(record));
    result.lines.push_back(reader.line());
  }
  writer.join();
  close(fds[0]);
  EXPECT_EQ(reader.bytes_consumed(), static_cast<int64_t>(text.size()));
  return result;
}

using Texts = std::vector<std::string>;

TEST(RecordReaderTest, LinesDoNotDependOnTheSizeOfWrites) {
  for (const size_t piece : {1, 2, 3, 7, 100}) {
    const ReadResult result = ReadAll("one\r\n\ntwo\nlast", '\0', piece);
    EXPECT_EQ(result.records, (Texts{"one", "", "two", "last"}));
    EXPECT_EQ(result.lines, (std::vector<int64_t>{1, 2, 3, 4}));
  }
}

TEST(RecordReaderTest, EmptyInputHasNoRecord) {
  EXPECT_TRUE(ReadAll("", '\0', 1).records.empty());
  EXPECT_EQ(ReadAll("\n", '\0', 1).records, (Texts{""}));
}

TEST(RecordReaderTest, TooLongLineIsSkippedAndLaterLinesAreRead) {
  for (const size_t piece : {1, 50, 1000}) {
    const ReadResult result =
        ReadAll("a\n" + std::string(300, 'x') + "\nb\n" + std::string(200, 'y'), '\0', piece, 100);
    EXPECT_EQ(result.records, (Texts{"a", "TOO LONG", "b", "TOO LONG"})) << piece;
    EXPECT_EQ(result.lines, (std::vector<int64_t>{1, 2, 3, 4}));
  }
}

TEST(RecordReaderTest, QuotedFieldsMaySpanLines) {
  for (const size_t piece : {1, 3, 100}) {
    const ReadResult result = ReadAll("a,\"x\ny\"\"\n\",c\nit\"s,plain\n\"q\"\n", ',', piece);
    EXPECT_EQ(result.records, (Texts{"a,\"x\ny\"\"\n\",c", "it\"s,plain", "\"q\""}));
    EXPECT_EQ(result.lines, (std::vector<int64_t>{1, 4, 5}));
  }
}

TEST(SplitCsvRecordTest, FieldsAreUnquoted) {
  EXPECT_EQ(SplitCsvRecord("a,\"b,\"\"c\"\"\",,d\"e", ','), (Texts{"a", "b,\"c\"", "", "d\"e"}));
  EXPECT_EQ(SplitCsvRecord("a\tb,c", '\t'), (Texts{"a", "b,c"}));
  EXPECT_EQ(SplitCsvRecord("", ','), (Texts{""}));
  EXPECT_EQ(SplitCsvRecord("\"\"", ','), (Texts{""}));
  EXPECT_EQ(SplitCsvRecord("\"a\",", ','), (Texts{"a", ""}));
  EXPECT_THROW(SplitCsvRecord("\"a", ','), RequestError);
  EXPECT_THROW(SplitCsvRecord("\"a\"b", ','), RequestError);
}

TEST(RowTemplateTest, ColumnsAreFilledInAndDoubledBracesAreLiteral) {
  const Texts columns = {"text", "lang"};
  EXPECT_EQ(RowTemplate("{{{lang}}}: {text}{text}", columns, "--template").Fill({"hi", "de"}), "{de}: hihi");
  EXPECT_THROW(RowTemplate("{txt}", columns, "--template"), ConfigError);
  EXPECT_THROW(RowTemplate("{text", columns, "--template"), ConfigError);
  EXPECT_THROW(RowTemplate("text}", columns, "--template"), ConfigError);
}

}  // namespace
}  // namespace vllm::app
