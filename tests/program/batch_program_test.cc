// Runs `vllmcli batch` and checks formats, row errors, and that different schedules produce identical records.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program/program.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class BatchProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(GuideModel(), "");
    directory_ = fs::path(testing::TempDir()) / ("vllmcli_batch_" + std::to_string(getpid()));
    fs::create_directories(directory_);
    model_ = CopyGuideModel(directory_ / "model", {.keeps_chat_template = false});
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name, std::ios::binary) << text;
    return (directory_ / name).string();
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  }
  ProgramResult Batch(std::vector<std::string> flags, const std::string& input = "") {
    flags.insert(flags.begin(), {"batch", "-m", model_, "--ignore-eos"});
    return RunProgram(flags, Input(input));
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> Sorted(const std::string& text) {
    std::vector<std::string> lines = Lines(text);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  // Returns rows with different sampling parameters.
  static std::string MixedRows() {
    std::string rows;
    for (int i = 0; i < 24; ++i) {
      Json row;
      row["custom_id"] = "row " + std::to_string(i);
      row["prompt"] = "Once upon a time there was a " + std::string(static_cast<size_t>(i), 'x') + " cat";
      row["max_tokens"] = 3 + i % 7;
      row["temperature"] = i % 2 == 0 ? 0.0 : 0.9;
      if (i % 3 == 1 && i % 2 == 1) row["n"] = 3;
      if (i % 4 == 0) row["logprobs"] = 2;
      if (i % 5 == 0) row["stop"] = "e";
      if (i % 6 == 5) row["seed"] = i;
      if (i % 8 == 3) row["prompt_logprobs"] = 1;
      rows += row.dump() + "\n";
    }
    return rows;
  }

  std::string model_;
  fs::path directory_;
};

TEST_F(BatchProgramTest, TextFileProducesOneRecordPerNonEmptyLine) {
  const std::string input = Write("in.txt", "Once upon\n\nOne day\n");
  const ProgramResult result = Batch({"-t", "0", "-n", "4", "--ordered", input});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err.rfind("2 rows, 0 failed, ", 0), 0u) << result.err;
  EXPECT_EQ(Lines(result.err).size(), 1u) << result.err;
  EXPECT_EQ(Batch({"-t", "0", "-n", "4", "--quiet", input}).err, "");
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2u);
  const Json first = Json::parse(lines[0]);
  EXPECT_EQ(first["index"], 0);
  EXPECT_EQ(first["outputs"][0]["token_ids"].size(), 4u);
  EXPECT_EQ(Json::parse(lines[1])["index"], 1);
  const ProgramResult text = Batch({"-t", "0", "-n", "4", "--ordered", "--format", "text", input});
  EXPECT_EQ(Lines(text.out)[0], first["outputs"][0]["text"].get<std::string>());
}

TEST_F(BatchProgramTest, RecordOfARowIsTheSameUnderDifferentSchedules) {
  const std::string input = Write("in.jsonl", MixedRows());
  const ProgramResult base = Batch({input});
  ASSERT_EQ(base.status, 0) << base.err;
  const std::vector<std::string> expected = Sorted(base.out);
  ASSERT_EQ(expected.size(), 24u);
  std::vector<std::string> shuffled = Lines(MixedRows());
  std::reverse(shuffled.begin(), shuffled.end());
  std::string backwards;
  for (const std::string& line : shuffled) backwards += line + "\n";
  const std::vector<std::vector<std::string>> variants = {
      {"--max-num-seqs", "1"},
      {"--max-num-seqs", "4"},
      {"--max-num-batched-tokens", "16"},
      {"--no-enable-prefix-caching"},
      {"--num-kv-blocks", "12", "--max-model-len", "128", "--stats"},
      {"--ordered"},
      {"-dp", "2"},
      {"-dp", "3", "--num-kv-blocks", "12", "--max-model-len", "128"},
      {"-dp", "2", "-tp", "2", "--max-num-seqs", "2"}};
  for (std::vector<std::string> flags : variants) {
    const std::string name = flags[0];
    flags.push_back(input);
    const ProgramResult result = Batch(flags);
    EXPECT_EQ(result.status, 0) << name << result.err;
    EXPECT_EQ(Sorted(result.out), expected) << name;
  }
  EXPECT_EQ(Sorted(Batch({Write("back.jsonl", backwards)}).out), expected);
}

TEST_F(BatchProgramTest, BadRowGetsAnErrorRecordAndTheOthersRun) {
  const std::string input = Write("in.jsonl",
                                  "{\"prompt\":\"Once\"}\n"
                                  "{\"prompt\":\"Once\"\n"
                                  "{\"prompt\":\"Once\",\"stop\":1}\n"
                                  "{\"prompt\":\"Once\",\"top_p\":7}\n"
                                  "{\"prompt_token_ids\":[1,99999999]}\n"
                                  "[]\n"
                                  "{\"prompt\":\"" +
                                      std::string(5000, 'z') +
                                      "\"}\n"
                                      "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n"
                                      "{\"custom_id\":\"a\",\"prompt\":\"Once\"}\n"
                                      "{\"custom_id\":\"a\",\"prompt\":\"Once\"}\n");
  const ProgramResult result = Batch({"-n", "2", "--ordered", input});
  EXPECT_EQ(result.status, 1);
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 10u);
  const std::vector<std::string> codes = {"",
                                          "invalid_json",
                                          "invalid_row",
                                          "invalid_request",
                                          "invalid_request",
                                          "invalid_json",
                                          "invalid_request",
                                          "invalid_request",
                                          "",
                                          "duplicate_custom_id"};
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json json = Json::parse(lines[i]);
    if (codes[i].empty()) {
      EXPECT_TRUE(json.contains("outputs")) << lines[i];
    } else {
      ASSERT_TRUE(json.contains("error")) << lines[i];
      EXPECT_EQ(json["error"]["code"], codes[i]) << lines[i];
      EXPECT_EQ(json["error"]["line"], i + 1);
    }
  }
  const ProgramResult check = Batch({"--check", input});
  EXPECT_EQ(check.status, 1);
  EXPECT_EQ(Lines(check.out).size(), 8u);
}

TEST_F(BatchProgramTest, OpenAiRowsProduceOpenAiRecords) {
  const std::string chat_template = Write("t.jinja", "{% for m in messages %}{{ m.content }} {% endfor %}");
  const std::string input = Write(
      "in.jsonl",
      R"({"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"Once"}],"max_completion_tokens":3,"logprobs":true,"top_logprobs":2}})"
      "\n"
      R"({"custom_id":"t","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"Once","max_tokens":3}})"
      "\n"
      R"({"custom_id":"e","method":"POST","url":"/v1/embeddings","body":{}})"
      "\n");
  const ProgramResult result = Batch({"-t", "0", "--ordered", "--chat-template", chat_template, input});
  EXPECT_EQ(result.status, 1);
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  const Json chat = Json::parse(lines[0]);
  EXPECT_EQ(chat["custom_id"], "c");
  EXPECT_TRUE(chat["error"].is_null());
  EXPECT_EQ(chat["response"]["status_code"], 200);
  const Json& choice = chat["response"]["body"]["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["logprobs"]["content"].size(), 3u);
  EXPECT_EQ(choice["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(chat["response"]["body"]["usage"]["completion_tokens"], 3);
  EXPECT_TRUE(Json::parse(lines[1])["response"]["body"]["choices"][0]["text"].is_string());
  const Json error = Json::parse(lines[2]);
  EXPECT_TRUE(error["response"].is_null());
  EXPECT_EQ(error["error"]["line"], 3);
}

TEST_F(BatchProgramTest, CsvRowsFillATemplate) {
  const std::string input = Write("in.csv", "name,what\ncat,\"a \"\"big\"\" one\"\ndog\n");
  const ProgramResult result = Batch({"-n", "2", "--ordered", "--template", "{name}: {what}", input});
  EXPECT_EQ(result.status, 1);
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(Json::parse(lines[0]).contains("outputs"));
  EXPECT_EQ(Json::parse(lines[1])["error"]["code"], "invalid_row");
  EXPECT_EQ(Batch({"--template", "{nme}", input}).status, 2);
}

TEST_F(BatchProgramTest, StandardInputIsJsonLinesUnlessAFlagNamesTheFormat) {
  EXPECT_EQ(Batch({"-n", "2", "-"}, "{\"prompt\":\"Once\"}\n").status, 0);
  EXPECT_EQ(Batch({"-n", "2", "--input-format", "txt", "-"}, "Once\n").status, 0);
  EXPECT_EQ(Batch({"-n", "2", "-"}, "").out, "");
}

TEST_F(BatchProgramTest, OutputFileIsNeverTheInputAndIsReplacedOnlyOnRequest) {
  const std::string input = Write("in.txt", "Once\n");
  fs::create_hard_link(input, directory_ / "hard.txt");
  fs::create_symlink(input, directory_ / "soft.txt");
  for (const char* name : {"in.txt", "hard.txt", "soft.txt"}) {
    EXPECT_EQ(Batch({"--overwrite", input, "-o", (directory_ / name).string()}).status, 2) << name;
  }
  EXPECT_EQ(Read(input), "Once\n");
  const std::string output = (directory_ / "out.jsonl").string();
  EXPECT_EQ(Batch({"-n", "2", input, "-o", output}).status, 0);
  const std::string first = Read(output);
  EXPECT_EQ(Lines(first).size(), 1u);
  EXPECT_EQ(Batch({"-n", "3", input, "-o", output}).status, 2);
  EXPECT_EQ(Read(output), first);
  EXPECT_EQ(Batch({"-n", "3", input, "-o", output, "--overwrite"}).status, 0);
  EXPECT_NE(Read(output), first);
}

TEST_F(BatchProgramTest, FullDeviceExitsWithStatusFour) {
  EXPECT_EQ(Batch({"-n", "2", Write("in.txt", "Once\n"), "-o", "/dev/full"}).status, 4);
}

TEST_F(BatchProgramTest, MissingInputExitsWithStatusThreeAndUnknownFormatWithTwo) {
  EXPECT_EQ(Batch({(directory_ / "none.txt").string()}).status, 3);
  EXPECT_EQ(Batch({(directory_ / "none.xyz").string()}).status, 2);
}

TEST_F(BatchProgramTest, RowsOfASlowPipeAreAnsweredAsTheyArrive) {
  ProgramOptions options;
  options.input = "{\"prompt\":\"Once\",\"max_tokens\":2}\n";
  options.keep_stdin_open = true;
  options.signal_after_output = SIGINT;
  const ProgramResult result = RunProgram({"batch", "-m", model_, "-"}, options);
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(Lines(result.out).size(), 1u);
}

TEST_F(BatchProgramTest, RowsTruncatedAtEveryByteGetRecords) {
  const std::string text = "{\"prompt\":\"\\u00e9 a\",\"max_tokens\":1,\"stop\":[\"x\"],\"logit_bias\":{\"5\":-1.5e0}}";
  std::string rows;
  for (size_t length = 1; length <= text.size(); ++length) rows += text.substr(0, length) + "\n";
  const ProgramResult result = Batch({"-"}, rows);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(Lines(result.out).size(), text.size());
}

}  // namespace
}  // namespace vllm::app
