// Tokenizer files are untrusted input. For any contents of a file, loading must return a tokenizer or throw a
// TokenizerError.
#include <nlohmann/json.hpp>

#include "tests/tokenizer/tokenizer_test_util.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/loaders/tiktoken_loader.h"

namespace vllm::tokenizer {
namespace {

const char* const kFiles[] = {"byte_level.json", "byte_fallback.json", "unigram.json", "word_piece.json",
                              "word_level.json"};

// Returns true if `json` loads. If so, also encodes and decodes a text.
bool Loads(std::string_view json) {
  try {
    const auto tokenizer = ParseTokenizerJson(json, "a test");
    const std::vector<int32_t> ids = tokenizer->Encode("The ships\xF0\x9F\x98\x80 [LS] <|end|>\n 12\xFF", true);
    tokenizer->Decode(ids, true);
    return true;
  } catch (const TokenizerError& error) {
    for (const char c : std::string_view(error.what())) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << error.what();
    return false;
  }
}

nlohmann::json SmallFile() {
  return nlohmann::json::parse(R"({"added_tokens": [], "model": {"type": "BPE", "unk_token": null,
      "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

std::string ErrorOf(const nlohmann::json& file) {
  try {
    ParseTokenizerJson(file.dump(), "a test");
  } catch (const TokenizerError& error) {
    return error.what();
  }
  return "";
}

TEST(DamagedFileTest, AFileTruncatedAtAnyByteIsRejected) {
  for (const char* name : kFiles) {
    const std::string json = ReadTestFile(DataPath(name));
    ASSERT_TRUE(Loads(json));
    for (size_t length = 0; length < json.size(); ++length) {
      ASSERT_FALSE(Loads(std::string_view(json).substr(0, length))) << length;
    }
  }
}

TEST(DamagedFileTest, RandomChangesNeverCrash) {
  std::mt19937 random(17);
  for (const char* name : kFiles) {
    const std::string json = ReadTestFile(DataPath(name));
    for (int round = 0; round < 1500; ++round) {
      std::string damaged = json;
      for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
        const size_t pos = random() % damaged.size();
        switch (random() % 4) {
          case 0:
            damaged[pos] = static_cast<char>(random());
            break;
          case 1:
            damaged[pos] = "\"\\{}[],:09-e"[random() % 12];
            break;
          case 2:
            damaged.erase(pos, 1 + random() % 40);
            break;
          default:
            damaged.insert(pos, damaged.substr(random() % damaged.size(), random() % 40));
        }
        if (damaged.empty()) damaged = "{";
      }
      Loads(damaged);
    }
  }
}

TEST(DamagedFileTest, MembersOfTheWrongTypeNeverCrash) {
  const nlohmann::json kinds[] = {
      nullptr, true, -1, 1.5, 1e300, "x", nlohmann::json::array(), nlohmann::json::object()};
  for (const char* name : kFiles) {
    const nlohmann::json file = nlohmann::json::parse(ReadTestFile(DataPath(name)));
    // Visits the tree without recursion. Does not descend into long lists and objects.
    std::vector<nlohmann::json::json_pointer> pending{nlohmann::json::json_pointer()};
    while (!pending.empty()) {
      const auto pointer = pending.back();
      pending.pop_back();
      const nlohmann::json& value = file[pointer];
      if (value.is_structured() && value.size() < 60) {
        for (const auto& item : value.items()) {
          pending.push_back(value.is_array() ? pointer / std::stoul(item.key()) : pointer / item.key());
        }
      }
      for (const nlohmann::json& kind : kinds) {
        nlohmann::json changed = file;
        changed[pointer] = kind;
        Loads(changed.dump());
      }
    }
  }
}

TEST(DamagedFileTest, InvalidMergesAreReported) {
  nlohmann::json file = SmallFile();
  file["model"]["merges"] = {"a b", "b a"};
  EXPECT_NE(ErrorOf(file).find("merge 1 of the model of a test: \"ba\" is not in the vocabulary"), std::string::npos)
      << ErrorOf(file);
  file["model"]["merges"] = {std::string(100000, 'a') + " b"};
  EXPECT_NE(ErrorOf(file), "");
  file["model"]["merges"] = {"a  b"};
  EXPECT_NE(ErrorOf(file), "");
  file["model"]["merges"] = nlohmann::json::parse(R"([["a"]])");
  EXPECT_NE(ErrorOf(file), "");
}

TEST(DamagedFileTest, AMergeShorterThanThePrefixIsRejected) {
  nlohmann::json file = SmallFile();
  file["model"]["continuing_subword_prefix"] = "####";
  EXPECT_NE(ErrorOf(file).find("continuing_subword_prefix"), std::string::npos);
}

TEST(DamagedFileTest, ATemplateWithAnUnknownTokenOrIdIsRejected) {
  nlohmann::json file = SmallFile();
  file["post_processor"] = nlohmann::json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}], "pair": [],
          "special_tokens": {}})");
  EXPECT_NE(ErrorOf(file).find("\"<s>\""), std::string::npos) << ErrorOf(file);
  file["post_processor"]["special_tokens"] = nlohmann::json::parse(R"({"<s>": {"id": "<s>", "ids": [77]}})");
  EXPECT_NE(ErrorOf(file).find("outside 0..2"), std::string::npos) << ErrorOf(file);
}

TEST(DamagedFileTest, TemplatesThatRepeatedlyDoubleTheTextAreRejected) {
  nlohmann::json file = SmallFile();
  const auto twice = nlohmann::json::parse(
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}}, {"Sequence": {"id": "A"}}]})");
  file["post_processor"] = {{"type", "Sequence"}, {"processors", std::vector<nlohmann::json>(60, twice)}};
  EXPECT_NE(ErrorOf(file).find("too long"), std::string::npos) << ErrorOf(file);
}

TEST(DamagedFileTest, StepsThatRepeatedlyLengthenTheTextAreRejected) {
  const nlohmann::json replace = {
      {"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(100, 'a')}};
  nlohmann::json file = SmallFile();
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::vector<nlohmann::json>(5, replace)}};
  EXPECT_NE(ErrorOf(file).find("grow too much"), std::string::npos) << ErrorOf(file);
  file = SmallFile();
  file["decoder"] = {{"type", "Sequence"}, {"decoders", std::vector<nlohmann::json>(5, replace)}};
  EXPECT_NE(ErrorOf(file).find("grow too much"), std::string::npos) << ErrorOf(file);
  file = SmallFile();
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", std::vector<nlohmann::json>(7, bytes)}};
  EXPECT_NE(ErrorOf(file).find("grow too much"), std::string::npos) << ErrorOf(file);
}

TEST(DamagedFileTest, AnExplodingRegularExpressionIsRejectedOrCompiled) {
  for (const char* regex : {"(((a{1000}){1000}){1000}){1000}", "((((((a?){50}){50}){50}){50}){50}){50}",
                            "(?:(?:(?:(?:x{0,99}){0,99}){0,99}){0,99}){0,99}y", "[\\p{L}&&[^\\p{N}]]{99999}"}) {
    nlohmann::json file = SmallFile();
    file["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
    Loads(file.dump());
  }
}

TEST(DamagedFileTest, ErrorOfAnUnsupportedModelNamesTheModel) {
  nlohmann::json file = SmallFile();
  file["model"]["type"] = "Markov";
  EXPECT_NE(ErrorOf(file).find("\"Markov\" is not supported"), std::string::npos) << ErrorOf(file);
}

TEST(DamagedFileTest, DeepNestingIsRejected) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_FALSE(Loads(deep));
  EXPECT_FALSE(Loads(R"({"normalizer": )" + deep + "}"));
  std::string sequences;
  for (int i = 0; i < 100000; ++i) sequences += R"({"type":"Sequence","normalizers":[)";
  EXPECT_FALSE(Loads(R"({"normalizer": )" + sequences + "}"));
}

TEST(DamagedFileTest, AnUnknownTokenOutsideTheVocabularyIsRejected) {
  nlohmann::json file = SmallFile();
  file["model"]["unk_token"] = "<unk>";
  EXPECT_NE(ErrorOf(file).find("unk_token \"<unk>\" is not in the vocabulary"), std::string::npos);
}

// Like Loads, but for tokenizer.model.
bool ModelFileLoads(const TempDirectory& directory, const std::string& bytes) {
  std::ofstream(directory.path() + "/tokenizer.model", std::ios::binary) << bytes;
  try {
    const auto tokenizer = LoadTokenizer(directory.path());
    const std::vector<int32_t> ids = tokenizer->Encode("The ships\xF0\x9F\x98\x80 <s>\n 12\xFF", true);
    tokenizer->Decode(ids, true);
    return true;
  } catch (const TokenizerError& error) {
    for (const char c : std::string_view(error.what())) EXPECT_TRUE(c >= 0x20 && c < 0x7F) << error.what();
    return false;
  }
}

TEST(DamagedFileTest, TruncatedOrChangedSentencePieceModelsNeverCrash) {
  std::mt19937 random(19);
  const TempDirectory directory;
  for (const char* name : {"unigram", "bpe", "bpe_bytes"}) {
    const std::string bytes = ReadTestFile(DataPath(std::string("sentencepiece/") + name + ".model"));
    for (size_t length = 0; length < bytes.size(); length += 1 + random() % 7) {
      ModelFileLoads(directory, bytes.substr(0, length));
    }
    EXPECT_TRUE(ModelFileLoads(directory, bytes)) << name;
    int num_loaded = 0;
    for (int round = 0; round < 1500; ++round) {
      std::string damaged = bytes;
      for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      num_loaded += ModelFileLoads(directory, damaged) ? 1 : 0;
    }
    EXPECT_GT(num_loaded, 0) << name;
    EXPECT_LT(num_loaded, 1500) << name;
  }
}

// Like Loads, but for a tiktoken file. The small file has too few ranks for a published encoding, so the encoding is
// passed explicitly.
bool RankFileLoads(const std::string& bytes) {
  try {
    const Tokenizer tokenizer(MakeTiktokenParts(bytes, "a test", {}, FindTiktokenEncoding("gpt2").get()));
    const std::vector<int32_t> ids = tokenizer.Encode("The ships\xF0\x9F\x98\x80 <s>\n 12\xFF", true);
    tokenizer.Decode(ids, true);
    return true;
  } catch (const TokenizerError&) {
    return false;
  }
}

TEST(DamagedFileTest, ChangedRankFilesNeverCrash) {
  std::mt19937 random(20);
  const std::string bytes = ReadTestFile(DataPath("tiktoken/small.tiktoken"));
  EXPECT_TRUE(RankFileLoads(bytes));
  int num_loaded = 0;
  for (int round = 0; round < 500; ++round) {
    std::string damaged = bytes.substr(0, random() % 2 == 0 ? bytes.size() : random() % bytes.size());
    for (size_t changes = 1 + random() % 4; changes > 0 && !damaged.empty(); --changes) {
      damaged[random() % damaged.size()] = "\n A=+9\xFF"[random() % 7];
    }
    num_loaded += RankFileLoads(damaged) ? 1 : 0;
  }
  EXPECT_GT(num_loaded, 0);
  EXPECT_LT(num_loaded, 500);
}

TEST(DamagedFileTest, AMissingFileIsReportedByName) {
  try {
    LoadTokenizerJson("/nonexistent/tokenizer.json");
    FAIL();
  } catch (const TokenizerError& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/tokenizer.json"), std::string::npos);
  }
}

TEST(JsonScannerTest, ReadsAllEscapes) {
  JsonScanner scanner(R"(["a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00", "", -12, 0])", "a test");
  scanner.BeginArray();
  ASSERT_TRUE(scanner.NextElement());
  EXPECT_EQ(scanner.ReadString(), "a\"\\/\b\f\n\r\t\xC3\xA9\xF0\x9F\x98\x80");
  ASSERT_TRUE(scanner.NextElement());
  EXPECT_EQ(scanner.ReadString(), "");
  ASSERT_TRUE(scanner.NextElement());
  EXPECT_EQ(scanner.ReadInteger(), -12);
  ASSERT_TRUE(scanner.NextElement());
  EXPECT_EQ(scanner.ReadInteger(), 0);
  EXPECT_FALSE(scanner.NextElement());
  scanner.ExpectEnd();
}

TEST(JsonScannerTest, RejectsInvalidJsonAndUnsupportedNumbers) {
  for (const char* text : {"[\"\\ud800\"]", "[\"\\x\"]", "[\"a\nb\"]", "[01]", "[1.5]", "[1e3]", "[-]", "[,]", "[1,]",
                           "[1 2]", "[\"a]", "[\"\\u12\"]", "[99999999999999999999]"}) {
    JsonScanner scanner(text, "a test");
    EXPECT_THROW(
        {
          scanner.BeginArray();
          while (scanner.NextElement()) {
            if (scanner.Peek() == '"') {
              scanner.ReadString();
            } else {
              scanner.ReadInteger();
            }
          }
        },
        TokenizerError)
        << text;
  }
}

}  // namespace
}  // namespace vllm::tokenizer
