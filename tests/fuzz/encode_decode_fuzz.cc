// Any bytes through small tokenizers of two kinds, the first byte says which: ids are of the vocabulary, text is UTF-8,
// and decoding token by token gives what decoding at once does.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace vllm {
namespace {

const Tokenizer& TokenizerOf(unsigned char choice) {
  const std::string folder = std::string(VLLMCLI_TEST_DATA) + "/tokenizer/";
  static const std::array<std::unique_ptr<Tokenizer>, 2> tokenizers = {
      Tokenizer::FromFile(folder + "byte_level.json"), Tokenizer::FromFile(folder + "byte_fallback.json")};
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
