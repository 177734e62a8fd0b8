// Fuzzes the parser of tokenizer.json. If the bytes are accepted, encodes and decodes a text.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/decode_stream.h"
#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  try {
    const auto tokenizer = tokenizer::ParseTokenizerJson(bytes, "fuzz");
    const std::vector<int32_t> ids = tokenizer->Encode("Hello  wörld 12345 \n\t<s>日本 don't 🙂 ", true);
    for (const int32_t id : ids) Require(id >= 0 && id < tokenizer->VocabSize(), "ids are in the vocabulary");
    const std::string text = tokenizer->Decode(ids, false);
    Require(tokenizer::IsValidUtf8(text), "decoded text is UTF-8");
  } catch (const tokenizer::TokenizerError&) {
  }
}

}  // namespace vllm
