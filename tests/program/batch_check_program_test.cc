// Checks that `batch --check` rejects exactly the rows that a run rejects, with the same records.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

const std::vector<std::string>& BadRows() {
  static const std::vector<std::string> rows = [] {
    std::vector<std::string> bad = {
        // Invalid JSON, and JSON that is not a row.
        R"({"prompt":"a")", R"([])", R"("text")", R"(7)", R"({})", R"({"prompt":"a"} x)",
        // Invalid prompts.
        R"({"prompt":7})", R"({"prompt":"a","messages":[]})", R"({"prompt_token_ids":[]})",
        R"({"prompt_token_ids":[-1]})", R"({"prompt_token_ids":[1,999999]})", R"({"prompt_token_ids":"1,2"})",
        R"({"prompt":"","add_special_tokens":false})", R"({"messages":7})", R"({"messages":[{"content":"x"}]})",
        // Invalid or conflicting sampling fields, and unsupported OpenAI rows.
        R"({"prompt":"a","temperature":"hot"})", R"({"prompt":"a","temperature":-1})",
        R"({"prompt":"a","temperature":2.5})", R"({"prompt":"a","top_p":0})", R"({"prompt":"a","top_p":1.5})",
        R"({"prompt":"a","top_k":-2})", R"({"prompt":"a","min_p":2})", R"({"prompt":"a","n":0})",
        R"({"prompt":"a","n":1000000})", R"({"prompt":"a","n":2,"temperature":0})",
        R"({"prompt":"a","presence_penalty":3})", R"({"prompt":"a","frequency_penalty":-3})",
        R"({"prompt":"a","repetition_penalty":0})", R"({"prompt":"a","max_tokens":0})",
        R"({"prompt":"a","min_tokens":-1})", R"({"prompt":"a","min_tokens":9,"max_tokens":5})",
        R"({"prompt":"a","min_tokens":1000000})", R"({"prompt":"a","logprobs":21})",
        R"({"prompt":"a","prompt_logprobs":-2})", R"({"prompt":"a","stop":[""]})",
        R"({"prompt":"a","stop":"x","detokenize":false})", R"({"prompt":"a","stop_token_ids":[999999]})",
        R"({"prompt":"a","bad_words":[" "]})", R"({"prompt":"a","bad_words":[""]})",
        R"({"prompt":"a","bad_words":["ok","\t"]})", R"({"prompt":"a","allowed_token_ids":[]})",
        R"({"prompt":"a","allowed_token_ids":[999999]})", R"({"prompt":"a","logit_bias":{"999999":1}})",
        R"({"prompt":"a","logit_bias":{"x":1}})",
        R"({"custom_id":"o","method":"GET","url":"/v1/completions","body":{"prompt":"a"}})",
        R"({"custom_id":"p","url":"/v1/embeddings","body":{}})",
        R"({"custom_id":"q","url":"/v1/completions","body":{"prompt":"a","stream":true}})"};
    std::string stops;
    for (int i = 0; i < 17; ++i) stops += std::string(i > 0 ? "," : "") + "\"s" + std::to_string(i) + "\"";
    bad.push_back(R"({"prompt":"a","stop":[)" + stops + "]}");
    bad.push_back(R"({"prompt":"a","stop":")" + std::string(257, 'x') + R"("})");
    bad.push_back(R"({"prompt":")" + std::string(20000, 'z') + R"("})");
    std::string words;
    for (int i = 0; i < 1025; ++i) words += std::string(i > 0 ? "," : "") + "\"w" + std::to_string(i) + "\"";
    bad.push_back(R"({"prompt":"a","bad_words":[)" + words + "]}");
    return bad;
  }();
  return rows;
}

std::map<int, std::string> ErrorRecords(const std::string& out) {
  std::map<int, std::string> records;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    if (json.contains("error") && json["error"].is_object()) records[json["error"]["line"]] = line;
  }
  return records;
}

TEST(BatchCheckProgramTest, CheckAndRunRejectTheSameRowsWithTheSameRecords) {
  ASSERT_GE(BadRows().size(), 40u);
  std::string input;
  for (const std::string& row : BadRows()) input += row + "\n";
  const std::string good =
      R"({"prompt":"a","bad_words":["x"],"stop":["y"],"max_tokens":1,"min_tokens":1,"logprobs":2})";
  input += good + "\n";
  const std::vector<std::string> common = {"batch", "-m", GuideModel(), "-n", "1", "-"};
  std::vector<std::string> with_check = common;
  with_check.emplace_back("--check");
  const ProgramResult run = RunProgram(common, Input(input));
  const ProgramResult check = RunProgram(with_check, Input(input));
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(check.status, 1);
  const std::map<int, std::string> rejected = ErrorRecords(run.out);
  EXPECT_EQ(ErrorRecords(check.out), rejected);
  for (size_t i = 0; i < BadRows().size(); ++i) {
    EXPECT_TRUE(rejected.contains(static_cast<int>(i) + 1)) << BadRows()[i].substr(0, 200);
  }
  EXPECT_FALSE(rejected.contains(static_cast<int>(BadRows().size()) + 1));
}

TEST(BatchCheckProgramTest, TheSummaryCountsOneRowInTheSingular) {
  const auto summary_of = [](const std::string& rows) {
    return RunProgram({"batch", "-", "--input-format", "txt", "--check"}, Input(rows)).err;
  };
  EXPECT_EQ(summary_of("a\n"), "1 row, 0 invalid\n");
  EXPECT_EQ(summary_of("a\nb\n"), "2 rows, 0 invalid\n");
}

TEST(BatchCheckProgramTest, FlagOutOfRangeIsAUsageError) {
  const ProgramResult check =
      RunProgram({"batch", "-m", GuideModel(), "--top-p", "3", "--check", "-"}, Input("{\"prompt\":\"a\"}\n"));
  EXPECT_EQ(check.status, 2);
}

TEST(BatchCheckProgramTest, ChatAndLiveViewCannotBeUsedWithCheck) {
  for (const std::string flag : {"--chat", "--live"}) {
    const ProgramResult check = RunProgram({"batch", "-", "--check", flag}, Input("{\"prompt\":\"a\"}\n"));
    EXPECT_EQ(check.status, 2) << flag;
    EXPECT_NE(check.err.find(flag + " cannot be used with --check"), std::string::npos) << check.err;
  }
}

}  // namespace
}  // namespace vllm::app
