#include "tokenizer/decode_stream.h"

namespace vllm {

DecodeStream::DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens), run_(tokenizer.decoder()) {}

void DecodeStream::Prime(std::span<const int32_t> prompt_ids) {
  std::string ignored;
  for (const int32_t id : prompt_ids) {
    Feed(id, ignored);
    ignored.clear();
  }
}

void DecodeStream::Feed(int32_t id, std::string& out) {
  if (const auto token = tokenizer_.TokenForDecoding(id, skip_special_tokens_)) run_.Feed(*token, out);
}

void DecodeStream::Flush(std::string& out) { run_.Finish(out); }

}  // namespace vllm
