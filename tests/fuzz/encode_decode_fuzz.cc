// Fuzzes encoding and decoding. The first byte selects a small tokenizer, which encodes the other bytes. The ids must
// be in the vocabulary, the decoded text must be valid UTF-8, and DecodeStream must give the same text as Decode.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

// Loads a SentencePiece file from a temporary model directory.
std::unique_ptr<tokenizer::Tokenizer> FromModelFile(const std::string& path) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("vllmcli_encode_decode_fuzz_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::filesystem::copy_file(path, directory / "tokenizer.model", std::filesystem::copy_options::overwrite_existing);
  auto tokenizer = tokenizer::LoadTokenizer(directory);
  std::filesystem::remove_all(directory);
  return tokenizer;
}

// Returns the tokenizer that `choice` selects. The tokenizers cover the model types of tokenizer.json and of
// SentencePiece files.
const tokenizer::Tokenizer& TokenizerOf(unsigned char choice) {
  static const std::vector<std::unique_ptr<tokenizer::Tokenizer>> tokenizers = [] {
    const std::string directory = std::string(VLLMCLI_TEST_DATA) + "/tokenizer/";
    std::vector<std::unique_ptr<tokenizer::Tokenizer>> all;
    for (const char* name : {"byte_level", "byte_fallback", "unigram", "unigram_bytes", "word_level", "word_piece"}) {
      all.push_back(tokenizer::LoadTokenizerJson(directory + name + ".json"));
    }
    for (const char* name : {"bpe", "bpe_bytes", "bpe_suffix", "unigram", "unigram_bytes", "unigram_suffix"}) {
      all.push_back(FromModelFile(directory + "sentencepiece/" + name + ".model"));
    }
    return all;
  }();
  return *tokenizers[choice % tokenizers.size()];
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  if (bytes.empty()) return;
  const tokenizer::Tokenizer& tokenizer = TokenizerOf(static_cast<unsigned char>(bytes[0]));
  const std::vector<int32_t> ids = tokenizer.Encode(bytes.substr(1), false);
  for (const int32_t id : ids) Require(id >= 0 && id < tokenizer.VocabSize(), "ids are in the vocabulary");
  const std::string whole = tokenizer.Decode(ids, false);
  Require(tokenizer::IsValidUtf8(whole), "decoded text is UTF-8");
  tokenizer::DecodeStream stream(tokenizer, false);
  std::string pieces;
  for (const int32_t id : ids) {
    stream.Feed(id, pieces);
    Require(tokenizer::IsValidUtf8(pieces), "streamed text is UTF-8");
  }
  stream.Flush(pieces);
  Require(pieces == whole, "streaming gives the same text as Decode");
}

}  // namespace vllm
