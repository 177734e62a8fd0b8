#include "tokenizer/loaders/gguf_vocabulary.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tokenizer/gguf_test_file.h"
#include "tokenizer/loaders/gguf_pre_tokenizers.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/models/sentence_piece_model.h"
#include "tokenizer/patterns/text_pattern.h"

namespace vllm::tokenizer {
namespace {

// Compares `tokenizer` with llama.cpp's vectors: texts separated by marker lines in one file, and a line of ids for
// each text in another.
void ExpectLlamaCppVectors(const Tokenizer& tokenizer, const std::string& name) {
  const std::string base = RealPath("tokenizer-vectors/llama.cpp/ggml-vocab-" + name + ".gguf");
  const std::string input = ReadTestFile(base + ".inp");
  const std::vector<std::string> lines = ReadLines(base + ".out");
  constexpr std::string_view kMarker = "\n__ggml_vocab_test__\n";
  size_t begin = 0;
  for (const std::string& line : lines) {
    const size_t end = std::min(input.find(kMarker, begin), input.size());
    const std::string text = input.substr(begin, end - begin);
    begin = std::min(end + kMarker.size(), input.size());
    std::istringstream numbers(line);
    std::vector<int32_t> ids;
    for (int32_t id; numbers >> id;) ids.push_back(id);
    EXPECT_EQ(tokenizer.Encode(text, false, false), ids) << testing::PrintToString(text);
    EXPECT_EQ(tokenizer.Decode(ids, false), text);
  }
  EXPECT_GT(lines.size(), 30u);
}

TEST(GgufVocabularyTest, RealVocabulariesMatchLlamaCpp) {
  const std::string directory = RealPath("tokenizers/gguf-vocab/");
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "reference data not found: " << directory;
  for (const char* name : {"gpt-2", "llama-spm"}) {
    SCOPED_TRACE(name);
    const GgufTestFile file(directory + "ggml-vocab-" + name + ".gguf");
    ExpectLlamaCppVectors(*MakeGgufTokenizer(file.vocabulary, name), name);
  }
}

TEST(GgufVocabularyTest, QwenTokensAndMergesMatchLlamaCpp) {
  const auto reference = LoadRealTokenizer("qwen2.5");
  if (!reference) GTEST_SKIP() << "reference data not found: tokenizers/qwen2.5";
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < reference->VocabSize(); ++id) {
    tokens.emplace_back(reference->IdToToken(id).value_or("[PAD" + std::to_string(id) + "]"));
  }
  const std::vector<std::string> merges = ReadLines(RealPath("tokenizers/qwen2.5/merges.txt"));
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "qwen2";
  vocabulary.tokens.assign(tokens.begin(), tokens.end());
  for (const std::string& merge : merges) {
    if (!merge.empty() && !merge.starts_with("#version")) vocabulary.merges.push_back(merge);
  }
  ExpectLlamaCppVectors(*MakeGgufTokenizer(vocabulary, "a test"), "qwen2");
}

// Makes the vocabulary that a GGUF converter would write for a SentencePiece model.
GgufVocabulary FromSentencePiece(const SentencePieceModel& model, const std::string& gguf_model) {
  GgufVocabulary vocabulary;
  vocabulary.model = gguf_model;
  for (const Piece& piece : model.pieces) {
    vocabulary.tokens.push_back(piece.text);
    vocabulary.scores.push_back(piece.score);
    vocabulary.token_types.push_back(static_cast<int32_t>(piece.type));
    if (piece.type == PieceType::kUnknown) vocabulary.unk_id = static_cast<int64_t>(vocabulary.tokens.size()) - 1;
  }
  vocabulary.add_space_prefix = model.normalization.add_dummy_prefix;
  vocabulary.remove_extra_whitespaces = model.normalization.remove_extra_whitespaces;
  vocabulary.precompiled_charsmap = model.normalization.precompiled_charsmap;
  vocabulary.add_bos = vocabulary.add_eos = false;
  return vocabulary;
}

TEST(GgufVocabularyTest, AUnigramVocabularyMatchesItsSentencePieceModel) {
  for (const char* name : {"unigram", "unigram_unused", "unigram_ties", "unigram_bytes", "unigram_loose"}) {
    const std::string bytes = ReadTestFile(DataPath(std::string("sentencepiece/") + name + ".model"));
    SentencePieceModel model = ReadSentencePieceModel(bytes, "a test");
    // MakeGgufTokenizer treats unused tokens like normal tokens, so turn them into control tokens.
    if (std::string_view(name) == "unigram_unused") {
      for (Piece& piece : model.pieces) {
        if (piece.type == PieceType::kUnused) piece.type = PieceType::kControl;
      }
    }
    const auto tokenizer = MakeGgufTokenizer(FromSentencePiece(model, "t5"), "a test");
    for (const std::string& line : ReadLines(DataPath(std::string("sentencepiece/") + name + ".jsonl"))) {
      const nlohmann::json row = nlohmann::json::parse(line);
      if (!row.contains("text")) continue;
      EXPECT_EQ(tokenizer->Encode(row["text"].get<std::string>(), false, false), row["ids"].get<std::vector<int32_t>>())
          << line;
    }
  }
}

TEST(GgufVocabularyTest, AWordPieceVocabularyMatchesItsTokenizerJson) {
  const auto reference = LoadTokenizerJson(DataPath("word_piece.json"));
  std::vector<std::string> tokens;
  GgufVocabulary vocabulary;
  vocabulary.model = "bert";
  for (int32_t id = 0; reference->IdToToken(id); ++id) {
    std::string token(reference->IdToToken(id).value());
    const bool special = reference->IsSpecial(id);
    if (token == "[LS]") break;  // only added tokens follow
    if (token.starts_with("##")) {
      token.erase(0, 2);
    } else if (!special) {
      token.insert(0, "\xE2\x96\x81");
    }
    tokens.push_back(token);
    vocabulary.token_types.push_back(special ? kGgufControl : kGgufNormal);
  }
  ASSERT_GT(tokens.size(), 200u);
  vocabulary.tokens.assign(tokens.begin(), tokens.end());
  vocabulary.unk_id = 1;
  vocabulary.bos_id = 2;
  vocabulary.sep_id = 3;
  const auto tokenizer = MakeGgufTokenizer(vocabulary, "a test");
  for (const char* text : {"The keeper of the lighthouse", "don't you SEE: 12 ships?",
                           "caf\xC3\xA9 \xE7\x81\xAF\xE5\x8F\xB0", "", "zzzzqqqq x"}) {
    EXPECT_EQ(tokenizer->Encode(text, true), reference->Encode(text, true)) << text;
  }
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("the keeper", false), true), "the keeper");

  const std::vector<int32_t> first = tokenizer->Encode("the keeper", false), second = tokenizer->Encode("see", false);
  const BoundedEncoding pair = tokenizer->EncodePair("the keeper", "see", 64);
  std::vector<int32_t> ids = {2};
  ids.insert(ids.end(), first.begin(), first.end());
  ids.push_back(3);
  std::vector<int32_t> types(ids.size(), 0);
  ids.insert(ids.end(), second.begin(), second.end());
  ids.push_back(3);
  types.resize(ids.size(), 1);
  EXPECT_EQ(pair.ids, ids);
  EXPECT_EQ(pair.type_ids, types);

  EXPECT_EQ(tokenizer->Encode("THE KEEPER", false), first);
  vocabulary.lowercase = false;
  const auto cased = MakeGgufTokenizer(vocabulary, "a test");
  EXPECT_EQ(cased->Encode("the keeper", false), first);
  EXPECT_NE(cased->Encode("THE KEEPER", false), first);
}

// The tokenizer.json has the structure of Gemma 4's.
TEST(GgufVocabularyTest, AGemma4VocabularyMatchesItsTokenizerJson) {
  std::vector<std::string> tokens = {"<pad>", "<eos>", "<bos>", "<unk>", "<turn|>"};
  const size_t num_special = tokens.size();
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kDigits[static_cast<size_t>(byte / 16)] +
                     kDigits[static_cast<size_t>(byte % 16)] + ">");
  }
  const size_t num_bytes = tokens.size() - num_special;
  const std::string space = "\xE2\x96\x81";
  for (const char* token : {"a", "b", "c", "\n", "."}) tokens.emplace_back(token);
  tokens.push_back(space);
  const std::vector<std::pair<std::string, std::string>> merges = {{"\n", "\n"},        {space, "a"},   {"b", "c"},
                                                                   {space + "a", "bc"}, {space, space}, {"\n\n", "\n"}};
  nlohmann::json json = {
      {"version", "1.0"},
      {"normalizer", {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}}},
      {"pre_tokenizer",
       {{"type", "Split"}, {"pattern", {{"String", " "}}}, {"behavior", "MergedWithPrevious"}, {"invert", false}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"ignore_merges", false}}},
      {"added_tokens", nlohmann::json::array()}};
  std::vector<std::string> lines;
  for (const auto& [left, right] : merges) {
    tokens.push_back(left + right);
    lines.push_back(left + " " + right);
    json["model"]["merges"].push_back({left, right});
  }
  GgufVocabulary vocabulary;
  vocabulary.model = "gemma4";
  for (size_t id = 0; id < tokens.size(); ++id) {
    json["model"]["vocab"][tokens[id]] = id;
    const bool is_byte = id >= num_special && id < num_special + num_bytes;
    vocabulary.token_types.push_back(id < num_special ? kGgufControl : is_byte ? kGgufByte : kGgufNormal);
    if (id < num_special) {
      json["added_tokens"].push_back({{"id", id}, {"content", tokens[id]}, {"special", true}, {"normalized", false}});
    }
  }
  vocabulary.tokens.assign(tokens.begin(), tokens.end());
  vocabulary.merges.assign(lines.begin(), lines.end());
  vocabulary.bos_id = 2;
  const auto reference = ParseTokenizerJson(json.dump(), "a test");
  const auto tokenizer = MakeGgufTokenizer(vocabulary, "a test");
  for (const char* text : {"a abc  a", " abc\n\n\n\nbc. ", "", "\n", "caf\xC3\xA9 a<turn|>\nbc", "x   abc"}) {
    std::vector<int32_t> expected = reference->Encode(text, false);
    EXPECT_EQ(tokenizer->Encode(text, false), expected) << text;
    EXPECT_EQ(tokenizer->Decode(expected, false), text);
    expected.insert(expected.begin(), 2);
    EXPECT_EQ(tokenizer->Encode(text, true), expected) << text;
  }
}

TEST(GgufVocabularyTest, EveryRegularExpressionOfThePreTokenizersCompiles) {
  for (const char* name : {"",
                           "default",
                           "llama-bpe",
                           "gpt-2",
                           "qwen2",
                           "qwen35",
                           "deepseek-llm",
                           "deepseek-coder",
                           "deepseek-v3",
                           "falcon",
                           "starcoder",
                           "refact",
                           "command-r",
                           "mpt",
                           "stablelm2",
                           "phi-2",
                           "tekken",
                           "gpt-4o",
                           "smollm",
                           "bloom",
                           "viking",
                           "seed-coder",
                           "minicpm5",
                           "exaone-moe",
                           "superbpe",
                           "tiny_aya",
                           "granite-embed-multi-97m"}) {
    const GgufPreTokenizer* pre = FindGgufPreTokenizer(name);
    ASSERT_NE(pre, nullptr) << name;
    for (const std::string_view regex : pre->regexes) EXPECT_NO_THROW(MakeRegexPattern(std::string(regex))) << regex;
  }
}

GgufVocabulary SmallVocabulary() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  vocabulary.tokens = {"a", "b", "ab", "<s>"};
  vocabulary.token_types = {1, 1, 1, 3};
  vocabulary.merges = {"a b"};
  return vocabulary;
}

std::string ErrorOf(const GgufVocabulary& vocabulary) {
  try {
    MakeGgufTokenizer(vocabulary, "a test");
  } catch (const TokenizerError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufVocabularyTest, UnknownModelsAndPreTokenizersAreReported) {
  EXPECT_EQ(ErrorOf(SmallVocabulary()), "");
  GgufVocabulary vocabulary = SmallVocabulary();
  vocabulary.pre = "klingon";
  EXPECT_NE(ErrorOf(vocabulary).find("pre-tokenizer \"klingon\" is not known"), std::string::npos);
  vocabulary.model = "rwkv";
  EXPECT_NE(ErrorOf(vocabulary).find("tokenizer model \"rwkv\" is not supported"), std::string::npos);
}

TEST(GgufVocabularyTest, InvalidVocabulariesAreRejected) {
  GgufVocabulary vocabulary = SmallVocabulary();
  vocabulary.scores = {0, 0};
  EXPECT_NE(ErrorOf(vocabulary).find("2 scores for 4 tokens"), std::string::npos);
  vocabulary = SmallVocabulary();
  vocabulary.token_types.push_back(1);
  EXPECT_NE(ErrorOf(vocabulary), "");
  vocabulary = SmallVocabulary();
  vocabulary.bos_id = 4;
  EXPECT_NE(ErrorOf(vocabulary).find("bos_token_id is 4 (limit 3)"), std::string::npos);
  vocabulary = SmallVocabulary();
  vocabulary.merges = {"a c"};
  EXPECT_NE(ErrorOf(vocabulary).find("\"c\" is not in the vocabulary"), std::string::npos);
  vocabulary = SmallVocabulary();
  vocabulary.add_bos = true;
  EXPECT_NE(ErrorOf(vocabulary).find("there is no bos_token_id"), std::string::npos);
  vocabulary = SmallVocabulary();
  vocabulary.tokens[1] = "\xFF";
  EXPECT_NE(ErrorOf(vocabulary).find("token 1 is not valid UTF-8"), std::string::npos);
  vocabulary = SmallVocabulary();
  vocabulary.tokens.clear();
  EXPECT_NE(ErrorOf(vocabulary), "");
}

TEST(GgufVocabularyTest, ControlTokensInTextAreRecognizedUnlessParsingIsOff) {
  GgufVocabulary vocabulary = SmallVocabulary();
  vocabulary.bos_id = 3;
  vocabulary.add_bos = true;
  const auto tokenizer = MakeGgufTokenizer(vocabulary, "a test");
  EXPECT_EQ(tokenizer->Encode("ab<s>", true), (std::vector<int32_t>{3, 2, 3}));
  EXPECT_EQ(tokenizer->Encode("ab<s>", true, false), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{3, 2}, true), "ab");
  EXPECT_EQ(tokenizer->Decode(std::vector<int32_t>{3, 2}, false), "<s>ab");
}

}  // namespace
}  // namespace vllm::tokenizer
