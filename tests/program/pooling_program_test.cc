// Runs vllmcli embed, score and rerank on the models of tests/data/pooling, and compares their results with those of
// sentence-transformers (tests/golden/pooling_golden.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/chats/sqlite.h"
#include "tests/program/program.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Json = nlohmann::json;

std::string Model(const std::string& name) { return std::string(VLLMCLI_SOURCE_DIR) + "/tests/data/pooling/" + name; }

Json Expected(const std::string& name) { return Json::parse(std::ifstream(Model(name) + "/expected.json")); }

std::vector<std::string> Cases(const char* field) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Model(""))) {
    if (Expected(entry.path().filename()).contains(field)) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<Json> Lines(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(Json::parse(line, nullptr, false));
  return lines;
}

std::string JsonLines(const Json& values) {
  std::string text;
  for (const Json& value : values) text += value.dump() + "\n";
  return text;
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected, const std::string& where) {
  ASSERT_EQ(actual.size(), expected.size()) << where;
  double dot = 0, a = 0, b = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-4 * std::max(1.0f, std::fabs(expected[i]))) << where << ", " << i;
    dot += static_cast<double>(actual[i]) * static_cast<double>(expected[i]);
    a += static_cast<double>(actual[i]) * static_cast<double>(actual[i]);
    b += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  EXPECT_GE(dot / std::sqrt(a * b), 0.99999) << where;
}

class EmbedGoldenTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, EmbedGoldenTest, testing::ValuesIn(Cases("texts")),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(EmbedGoldenTest, VectorsAreThoseOfSentenceTransformers) {
  const Json expected = Expected(GetParam());
  for (const auto& [prompt, vectors] : expected["prompts"].items()) {
    std::vector<std::string> arguments = {"embed", "-m", Model(GetParam()), "--jsonl"};
    if (!prompt.empty()) arguments.insert(arguments.end(), {"--prompt-name", prompt});
    // sentence-transformers does not store this setting.
    if (GetParam() == "nomic_mean") arguments.insert(arguments.end(), {"--dimensions", "16"});
    const ProgramResult result = RunProgram(arguments, Input(JsonLines(expected["texts"])));
    ASSERT_EQ(result.status, 0) << result.err;
    const std::vector<Json> lines = Lines(result.out);
    ASSERT_EQ(lines.size(), vectors.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i]["index"], i);
      ExpectClose(lines[i]["embedding"].get<std::vector<float>>(), vectors[i].get<std::vector<float>>(),
                  prompt + ", text " + std::to_string(i));
    }
  }
}

class ScoreGoldenTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, ScoreGoldenTest, testing::ValuesIn(Cases("pairs")),
                         [](const auto& param_info) { return param_info.param; });

TEST_P(ScoreGoldenTest, ScoresAreThoseOfSentenceTransformers) {
  const Json expected = Expected(GetParam());
  const ProgramResult result =
      RunProgram({"score", "-m", Model(GetParam()), "--jsonl"}, Input(JsonLines(expected["pairs"])));
  ASSERT_EQ(result.status, 0) << result.err;
  const std::vector<Json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), expected["scores"].size());
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_NEAR(lines[i]["score"].get<double>(), expected["scores"][i].get<double>(), 1e-4) << i;
  }
}

TEST_P(ScoreGoldenTest, RerankSortsByTheScores) {
  const Json expected = Expected(GetParam());
  const std::string query = "what is a panda?";
  const Json documents = {"a bear of china", "a kind of bread", "tea", "the mat", "a panda is a bear"};
  Json pairs;
  for (const Json& document : documents) pairs.push_back({query, document});
  std::vector<double> scores;
  for (const Json& line : Lines(RunProgram({"score", "-m", Model(GetParam()), "--jsonl"}, Input(JsonLines(pairs))).out))
    scores.push_back(line["score"]);
  ASSERT_EQ(scores.size(), documents.size());
  std::string text;
  for (const Json& document : documents) text += document.get<std::string>() + "\n";
  const ProgramResult result = RunProgram({"rerank", query, "-m", Model(GetParam()), "--top-n", "3"}, Input(text));
  ASSERT_EQ(result.status, 0) << result.err;
  const std::vector<Json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 3u);
  std::vector<double> sorted = scores;
  std::ranges::sort(sorted, std::greater<>());
  for (size_t i = 0; i < 3; ++i) {
    const size_t index = lines[i]["index"];
    EXPECT_EQ(lines[i]["relevance_score"].get<double>(), sorted[i]);
    EXPECT_EQ(scores[index], sorted[i]);
    EXPECT_EQ(lines[i]["document"]["text"], documents[index]);
  }
}

class EmbedProgramTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = temp_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  ProgramResult Embed(std::vector<std::string> more, const std::string& input = "") const {
    more.insert(more.begin(), {"embed", "-m", Model("bert_mean")});
    return RunProgram(more, Input(input));
  }

  TempDirectory temp_;
};

TEST_F(EmbedProgramTest, EachLineOfTheFilesIsAText) {
  const std::string first = Write("a.txt", "the cat\n\nthe dog"), second = Write("b.txt", "a mat\n");
  const ProgramResult result = Embed({first, second});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::vector<Json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["num_tokens"], 4);
  EXPECT_EQ(lines[1]["num_tokens"], 2);  // an empty line is an empty text
  EXPECT_EQ(result.out, Embed({}, "the cat\n\nthe dog\na mat\n").out);
  EXPECT_EQ(Lines(Embed({second}).out)[0]["embedding"], lines[3]["embedding"]);
}

TEST_F(EmbedProgramTest, SaysHowItPools) {
  EXPECT_NE(Embed({}, "the cat\n").err.find("mean pooling, normalized, 32 dimensions"), std::string::npos);
  const std::string changed = Embed({"--pooling", "cls", "--no-normalize", "--dimensions", "8"}, "the cat\n").err;
  EXPECT_NE(changed.find("cls pooling, not normalized, 8 dimensions"), std::string::npos) << changed;
  EXPECT_EQ(Embed({"--quiet"}, "the cat\n").err, "");
}

TEST_F(EmbedProgramTest, NumpyFileHasTheSameVectors) {
  const std::vector<Json> lines = Lines(Embed({}, "the cat\nthe dog\na mat\n").out);
  const std::string path = temp_.path() + "/out.npy";
  ASSERT_EQ(Embed({"-o", path}, "the cat\nthe dog\na mat\n").status, 0);
  const std::string file = Contents(path);
  ASSERT_EQ(file.size(), 128 + 3 * 32 * sizeof(float));
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.substr(10, 60).find("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 32), }"), 0u);
  EXPECT_EQ(file[127], '\n');
  for (size_t i = 0; i < 3; ++i) {
    std::vector<float> row(32);
    std::memcpy(row.data(), file.data() + 128 + i * 32 * sizeof(float), 32 * sizeof(float));
    EXPECT_EQ(row, lines[i]["embedding"].get<std::vector<float>>());
  }
}

TEST_F(EmbedProgramTest, SqliteTableHasTheSameVectors) {
  const std::string rows = "{\"id\": \"a\", \"text\": \"the cat\"}\n{\"id\": \"b\", \"text\": \"the dog\"}\n";
  const std::string path = temp_.path() + "/out.sqlite";
  ASSERT_EQ(Embed({"--jsonl", "-o", path}, rows).status, 0);
  ASSERT_EQ(Embed({"--jsonl", "-o", path}, "{\"id\": \"b\", \"text\": \"a mat\"}\n").status, 0);
  const std::vector<float> expected = Lines(Embed({}, "a mat\n").out)[0]["embedding"];
  Database database(path, Database::Mode::kRead, 1000);
  EXPECT_EQ(database.QueryInt("SELECT count(*) FROM embeddings"), 2);
  EXPECT_EQ(database.QueryText("SELECT text FROM embeddings WHERE id = 'a'"), "the cat");
  EXPECT_EQ(database.QueryText("SELECT text FROM embeddings WHERE id = 'b'"), "a mat");
  Statement select(database, "SELECT embedding FROM embeddings WHERE id = 'b'");
  ASSERT_TRUE(select.Step());
  const std::span<const std::byte> blob = select.Blob(0);
  ASSERT_EQ(blob.size(), expected.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(blob.data(), expected.data(), blob.size()), 0);
}

TEST_F(EmbedProgramTest, Base64IsTheBytesOfTheFloats) {
  const Json line = Lines(Embed({"--encoding-format", "base64"}, "the cat\n").out).at(0);
  const std::vector<float> vector = Lines(Embed({}, "the cat\n").out).at(0)["embedding"];
  const std::string text = line["embedding"];
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size() && text[i] != '='; ++i) {
    bits = bits << 6 | static_cast<uint32_t>(digits.find(text[i]));
    if (i % 4 == 0) continue;
    bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 255);
  }
  ASSERT_EQ(bytes.size(), vector.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(bytes.data(), vector.data(), bytes.size()), 0);
}

TEST_F(EmbedProgramTest, WholeFilesAreTextsWithTheirPathsAsIds) {
  std::filesystem::create_directory(temp_.path() + "/notes");
  Write("notes/a.txt", "the cat\nsat");
  Write("notes/b.txt", "a mat");
  const ProgramResult result = Embed({"--whole-files", temp_.path() + "/notes"});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::vector<Json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["id"], temp_.path() + "/notes/a.txt");
  EXPECT_EQ(lines[1]["id"], temp_.path() + "/notes/b.txt");
  EXPECT_EQ(lines[0]["embedding"], Lines(Embed({}, "the cat sat\n").out)[0]["embedding"]);
}

TEST_F(EmbedProgramTest, CutTextsAreCounted) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "cat ";
  const ProgramResult result = Embed({}, text + "\nthe dog\n" + text + "\n");
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.err.find("warning: 2 texts were cut to 24 tokens"), std::string::npos) << result.err;
  EXPECT_EQ(Lines(result.out)[0]["num_tokens"], 24);
}

TEST_F(EmbedProgramTest, WrongArgumentsAreErrors) {
  const auto expect = [&](const ProgramResult& result, int status, const std::string& message) {
    EXPECT_EQ(result.status, status) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  };
  expect(Embed({"--dimensions", "33"}, "a\n"), 2, "--dimensions: outside 1 to 32");
  expect(Embed({"--prompt-name", "title"}, "a\n"), 2, "--prompt-name: the model has no prompt of this name");
  expect(Embed({temp_.path() + "/missing.txt"}), 3, "No such file or directory");
  expect(Embed({"--jsonl"}, "{\"text\": 1}\n"), 3, "must be a string, or an object with a string \"text\"");
  expect(Embed({"--jsonl"}, "\"a\"\n[\n"), 3, "standard input: line 2");
  expect(Embed({"--vector-format", "npy"}, "a\n"), 2, "need a file");
  const std::string path = Write("old.jsonl", "old");
  expect(Embed({"-o", path}, "a\n"), 2, "old.jsonl exists");
  EXPECT_EQ(Contents(path), "old");
  expect(RunProgram({"run", "-m", Model("bert_mean"), "hello"}), 3, "generates no text (BertModel)");
  expect(RunProgram({"score", "-m", Model("bert_mean"), "one"}), 2, "needs a text and the texts to compare it with");
  expect(RunProgram({"rerank"}), 2, "needs a query");
}

TEST_F(EmbedProgramTest, ModelWithoutClassifierComparesVectors) {
  const ProgramResult result = RunProgram({"score", "-m", Model("bert_mean"), "the cat", "the cat", "a mat"});
  ASSERT_EQ(result.status, 0) << result.err;
  const std::vector<Json> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NEAR(lines[0]["score"].get<double>(), 1.0, 1e-6);
  EXPECT_LT(lines[1]["score"].get<double>(), 0.9999);
}

TEST_F(EmbedProgramTest, BrokenFilesAreErrorsThatNameThem) {
  const auto with = [&](const std::string& file, const std::string& text) {
    const std::string directory = temp_.path() + "/model";
    std::filesystem::remove_all(directory);
    std::filesystem::copy(Model("gemma_dense"), directory, std::filesystem::copy_options::recursive);
    std::ofstream(directory + "/" + file, std::ios::binary) << text;
    const ProgramResult result = RunProgram({"embed", "-m", directory}, Input("a\n"));
    EXPECT_EQ(result.status, 3) << file << ": " << result.err;
    return result.err;
  };
  EXPECT_NE(with("modules.json", "{}").find("modules.json"), std::string::npos);
  EXPECT_NE(with("modules.json", "[{\"type\": \"x.WordWeights\"}]").find("unknown module"), std::string::npos);
  EXPECT_NE(with("modules.json", "[{\"type\": \"x.Pooling\", \"path\": \"../x\"}]").find("path"), std::string::npos);
  EXPECT_NE(with("1_Pooling/config.json", "{\"pooling_mode\": \"best\"}").find("unknown pooling"), std::string::npos);
  EXPECT_NE(with("2_Dense/config.json", "{\"in_features\": 3, \"out_features\": 4}").find("in_features"),
            std::string::npos);
  EXPECT_NE(with("2_Dense/model.safetensors", "short").find("2_Dense/model.safetensors"), std::string::npos);
}

TEST_F(EmbedProgramTest, ShowSaysHowTheModelPools) {
  const auto show = [](const std::string& name) {
    return Json::parse(RunProgram({"show", "-m", Model(name), "--json"}).out);
  };
  const Json gemma = show("gemma_dense");
  EXPECT_EQ(gemma["generates_text"], false);
  EXPECT_EQ(gemma["pooling"], "mean");
  EXPECT_EQ(gemma["vector_size"], 20);
  EXPECT_EQ(gemma["normalized"], true);
  EXPECT_EQ(gemma["kv_cache_bytes_per_token"], 0);
  EXPECT_EQ(show("bert_three_poolings")["pooling"], "cls+mean+max");
  EXPECT_EQ(show("bert_three_poolings")["vector_size"], 96);
  EXPECT_EQ(show("xlmr_reranker")["num_labels"], 1);
  EXPECT_FALSE(Json::parse(RunProgram({"show", "-m", GuideModel(), "--json"}).out).contains("pooling"));
}

TEST_F(EmbedProgramTest, ModelMayLimitTheSizesOfItsVectors) {
  const std::string directory = temp_.path() + "/model";
  std::filesystem::copy(Model("bert_mean"), directory, std::filesystem::copy_options::recursive);
  Json config = Json::parse(std::ifstream(directory + "/config.json"));
  config["matryoshka_dimensions"] = {8, 16};
  std::ofstream(directory + "/config.json") << config;
  const auto run = [&](const std::string& size) {
    return RunProgram({"embed", "-m", directory, "--dimensions", size}, Input("the cat\n"));
  };
  EXPECT_EQ(run("8").status, 0);
  EXPECT_EQ(run("32").status, 0);
  const ProgramResult result = run("12");
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("--dimensions: the model's vectors can be cut to 8, 16 (12)"), std::string::npos)
      << result.err;
}

TEST_F(EmbedProgramTest, TextsAreLoweredIfTheFilesSaySo) {
  const std::string directory = temp_.path() + "/model";
  std::filesystem::copy(Model("bert_mean"), directory, std::filesystem::copy_options::recursive);
  Json tokenizer = Json::parse(std::ifstream(directory + "/tokenizer.json"));
  tokenizer["normalizer"]["lowercase"] = false;
  std::ofstream(directory + "/tokenizer.json") << tokenizer;
  const auto vector = [&](const std::string& text) {
    return Lines(RunProgram({"embed", "-m", directory}, Input(text)).out).at(0)["embedding"];
  };
  EXPECT_NE(vector("The CAT"), vector("the cat"));
  Json config = Json::parse(std::ifstream(directory + "/sentence_bert_config.json"));
  config["do_lower_case"] = true;
  std::ofstream(directory + "/sentence_bert_config.json") << config;
  EXPECT_EQ(vector("The CAT"), vector("the cat"));
}

// The score must be what the logprobs of "yes" and "no" after the model card's prompt give.
TEST_F(EmbedProgramTest, LanguageModelJudgesDocumentsLikeQwen3Reranker) {
  const std::string file = RealModel("SmolLM2-135M-Instruct") + "/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "reference data not found: SmolLM2-135M-Instruct";
  const std::string model = temp_.path() + "/any-reranker.gguf";
  std::filesystem::create_symlink(file, model);
  const std::string prompt =
      "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
      "provided. "
      "Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: Given a web search "
      "query, retrieve relevant passages that answer the query\n<Query>: how to brew tea\n<Document>: boil "
      "water<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
  const auto logprob = [&](const std::string& word) {
    const Json ids =
        Json::parse(RunProgram({"tokenize", "-m", model, "--no-add-special-tokens", word}).out, nullptr, false);
    const ProgramResult result = RunProgram({"complete", "-m", model, "-t", "0", "-n", "1", "--logprobs", "0",
                                             "--allowed-token-ids", ids.at(0).dump(), "--json", prompt});
    return Json::parse(result.out)["outputs"][0]["logprobs"][0]["logprob"].get<double>();
  };
  const double expected = 1.0 / (1.0 + std::exp(logprob("no") - logprob("yes")));
  const ProgramResult result = RunProgram({"score", "-m", model, "how to brew tea", "boil water"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.err.find("probability of \"yes\" against \"no\""), std::string::npos) << result.err;
  EXPECT_NEAR(Lines(result.out)[0]["score"].get<double>(), expected, 1e-5);
}

class PoolingBatchTest : public EmbedProgramTest {
 protected:
  static Json Row(const std::string& id, const std::string& url, const Json& body) {
    return {{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}};
  }
  std::map<std::string, Json> Batch(const std::string& model, const Json& rows, int status,
                                    std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"batch", "-", "-m", Model(model)});
    const ProgramResult result = RunProgram(more, Input(JsonLines(rows)));
    EXPECT_EQ(result.status, status) << result.err;
    std::map<std::string, Json> records;
    for (const Json& line : Lines(result.out)) records[line["custom_id"]] = line;
    return records;
  }
};

TEST_F(PoolingBatchTest, EmbeddingRowsHaveTheVectorsOfEmbed) {
  const std::vector<Json> lines = Lines(Embed({}, "the cat\na mat\n").out);
  const auto records =
      Batch("bert_mean",
            {Row("one", "/v1/embeddings", {{"model", "m"}, {"input", "the cat"}}),
             Row("two", "/v1/embeddings", {{"input", {"a mat", "the cat"}}}),
             Row("ids", "/v1/embeddings", {{"input", {2, 5, 6, 3}}}),
             Row("cut", "/v1/embeddings", {{"input", "the cat"}, {"dimensions", 8}, {"encoding_format", "base64"}})},
            0);
  ASSERT_EQ(records.size(), 4u);
  const Json one = records.at("one")["response"]["body"];
  EXPECT_EQ(one["object"], "list");
  EXPECT_EQ(one["model"], "m");
  EXPECT_EQ(one["data"].size(), 1u);
  EXPECT_EQ(one["data"][0]["object"], "embedding");
  EXPECT_EQ(one["data"][0]["embedding"], lines[0]["embedding"]);
  EXPECT_EQ(one["usage"], (Json{{"prompt_tokens", 4}, {"total_tokens", 4}}));
  const Json two = records.at("two")["response"]["body"]["data"];
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0]["embedding"], lines[1]["embedding"]);
  EXPECT_EQ(two[1]["embedding"], lines[0]["embedding"]);
  EXPECT_EQ(records.at("ids")["response"]["body"]["usage"]["prompt_tokens"], 4);
  EXPECT_EQ(records.at("cut")["response"]["body"]["data"][0]["embedding"].get<std::string>().size(), 44u);  // 32 bytes
}

TEST_F(PoolingBatchTest, RerankRowsHaveTheScoresOfRerank) {
  const Json documents = {"a bear of china", {{"text", "a kind of bread"}}, "tea"};
  for (const std::string model : {"xlmr_reranker", "bert_mean"}) {
    const ProgramResult expected = RunProgram({"rerank", "what is a panda?", "-m", Model(model)},
                                              Input("a bear of china\na kind of bread\ntea\n"));
    const auto records = Batch(
        model,
        Json::array({Row("a", "/v1/rerank", {{"query", "what is a panda?"}, {"documents", documents}, {"top_n", 2}})}),
        0);
    const Json results = records.at("a")["response"]["body"]["results"];
    ASSERT_EQ(results.size(), 2u);
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(results[i], Lines(expected.out)[i]) << model;
  }
}

TEST_F(PoolingBatchTest, BadRowsAreErrorRecords) {
  const auto message = [](const Json& record) { return record["error"]["message"].get<std::string>(); };
  const Json rows = {Row("no input", "/v1/embeddings", Json::object()),
                     Row("empty", "/v1/embeddings", {{"input", Json::array()}}),
                     Row("mixed", "/v1/embeddings", {{"input", {"a", {1, 2}}}}),
                     Row("large", "/v1/embeddings", {{"input", "a"}, {"dimensions", 33}}),
                     Row("id", "/v1/embeddings", {{"input", {{5}, {99}}}}),
                     Row("format", "/v1/embeddings", {{"input", "a"}, {"encoding_format", "hex"}}),
                     Row("query", "/v1/rerank", {{"documents", {"a"}}}),
                     Row("chat", "/v1/completions", {{"prompt", "a"}}),
                     Row("good", "/v1/embeddings", {{"input", "a"}})};
  const auto records = Batch("bert_mean", rows, 1);
  ASSERT_EQ(records.size(), rows.size());
  EXPECT_EQ(message(records.at("no input")), "input: missing");
  EXPECT_NE(message(records.at("empty")).find("input: must be a text"), std::string::npos);
  EXPECT_EQ(message(records.at("mixed")), "input: mixes texts and token ids");
  EXPECT_EQ(message(records.at("large")), "dimensions: outside 1 to 32 (33)");
  EXPECT_NE(message(records.at("id")).find("outside the vocabulary"), std::string::npos);
  EXPECT_NE(message(records.at("format")).find("encoding_format"), std::string::npos);
  EXPECT_EQ(message(records.at("query")), "query: missing");
  EXPECT_EQ(message(records.at("chat")), "prompt: the model generates no text (BertModel)");
  EXPECT_TRUE(records.at("good")["error"].is_null());
  // --check finds the same errors without the engine.
  const auto checked = Batch("bert_mean", rows, 1, {"--check"});
  EXPECT_EQ(checked.size(), rows.size() - 1);
  for (const auto& [id, record] : checked) EXPECT_EQ(message(record), message(records.at(id))) << id;
}

TEST_F(PoolingBatchTest, ResumedBatchHasTheSameRecords) {
  Json rows;
  for (int i = 0; i < 60; ++i) {
    rows.push_back(
        Row("row " + std::to_string(i), "/v1/embeddings", {{"input", {"the cat", "row " + std::to_string(i)}}}));
  }
  const std::string input = Write("rows.jsonl", JsonLines(rows));
  const std::string whole = temp_.path() + "/whole.jsonl", part = temp_.path() + "/part.jsonl";
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"batch", input, "-m", Model("bert_mean"), "--ordered"});
    return RunProgram(more).status;
  };
  ASSERT_EQ(run({"-o", whole}), 0);
  ASSERT_EQ(run({"-o", part, "--limit", "20"}), 0);
  ASSERT_EQ(run({"-o", part, "--resume"}), 0);
  EXPECT_EQ(ReadBatchRecords(part), ReadBatchRecords(whole));
  EXPECT_EQ(ReadBatchRecords(whole).size(), 60u);
}

TEST_F(PoolingBatchTest, LanguageModelTakesRowsOfAllKinds) {
  const Json rows = {Row("vector", "/v1/embeddings", {{"input", "hello"}}),
                     Row("text", "/v1/completions", {{"prompt", "hello"}, {"max_tokens", 5}, {"temperature", 0}})};
  const ProgramResult result = RunProgram({"batch", "-", "-m", GuideModel()}, Input(JsonLines(rows)));
  ASSERT_EQ(result.status, 0) << result.err;
  std::map<std::string, Json> records;
  for (const Json& line : Lines(result.out)) records[line["custom_id"]] = line["response"]["body"];
  EXPECT_FALSE(records["vector"]["data"][0]["embedding"].empty());
  EXPECT_EQ(records["text"]["usage"]["completion_tokens"], 5);
}

}  // namespace
}  // namespace vllm::app
