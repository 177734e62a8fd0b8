// Any bytes through small tokenizers of every kind, the first byte says which: ids are of the vocabulary, text is
// UTF-8, and decoding token by token gives what decoding at once does.
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

// A SentencePiece file as a model's directory has it.
std::unique_ptr<Tokenizer> FromModelFile(const std::string& path) {
  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("vllmcli_encode_decode_fuzz_" + std::to_string(getpid()));
  std::filesystem::create_directories(directory);
  std::filesystem::copy_file(path, directory / "tokenizer.model", std::filesystem::copy_options::overwrite_existing);
  auto tokenizer = LoadTokenizer(directory);
  std::filesystem::remove_all(directory);
  return tokenizer;
}

// One of each kind of model.
const Tokenizer& TokenizerOf(unsigned char choice) {
  static const std::vector<std::unique_ptr<Tokenizer>> tokenizers = [] {
    const std::string directory = std::string(VLLMCLI_TEST_DATA) + "/tokenizer/";
    std::vector<std::unique_ptr<Tokenizer>> all;
    for (const char* name : {"byte_level", "byte_fallback", "unigram", "unigram_bytes", "word_level", "word_piece"}) {
      all.push_back(LoadTokenizerJson(directory + name + ".json"));
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
  const Tokenizer& tokenizer = TokenizerOf(static_cast<unsigned char>(bytes[0]));
  const std::vector<int32_t> ids = tokenizer.Encode(bytes.substr(1), false);
  for (const int32_t id : ids) Require(id >= 0 && id < tokenizer.VocabSize(), "ids are of the vocabulary");
  const std::string whole = tokenizer.Decode(ids, false);
  Require(IsValidUtf8(whole), "decoded text is UTF-8");
  DecodeStream stream(tokenizer, false);
  std::string pieces;
  for (const int32_t id : ids) {
    stream.Feed(id, pieces);
    Require(IsValidUtf8(pieces), "every piece ends with a whole character");
  }
  stream.Flush(pieces);
  Require(pieces == whole, "pieces are the whole");
}

}  // namespace vllm
