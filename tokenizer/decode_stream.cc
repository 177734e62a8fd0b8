#include "tokenizer/decode_stream.h"

#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {

DecodeStream::DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens), run_(tokenizer.decoder()) {}

void DecodeStream::Prime(std::span<const int32_t> prompt_ids) {
  // prompt_run decodes only the prompt. Its Finish appends the prompt text that run_ still withholds.
  DecoderRun prompt_run(tokenizer_.decoder());
  std::string discarded;
  for (const int32_t id : prompt_ids) {
    const auto token = tokenizer_.TokenForDecoding(id, skip_special_tokens_);
    if (!token) continue;
    run_.Feed(*token, discarded);
    discarded.clear();
    prompt_run.Feed(*token, discarded);
    discarded.clear();
  }
  prompt_run.Finish(prompt_tail_);
}

void DecodeStream::DropPromptTail(size_t begin, std::string& out) {
  size_t length = 0;
  while (length < prompt_tail_.size() && begin + length < out.size()) {
    const size_t step = CodePointAt(prompt_tail_, length).length;
    if (out.compare(begin + length, step, prompt_tail_, length, step) != 0) {
      prompt_tail_.clear();  // a later token changed the tail, for example by completing a character
      break;
    }
    length += step;
  }
  prompt_tail_.erase(0, length);
  out.erase(begin, length);
}

void DecodeStream::Feed(int32_t id, std::string& out) {
  const auto token = tokenizer_.TokenForDecoding(id, skip_special_tokens_);
  if (!token) return;
  const size_t begin = out.size();
  run_.Feed(*token, out);
  if (!prompt_tail_.empty()) DropPromptTail(begin, out);
}

void DecodeStream::Flush(std::string& out) {
  const size_t begin = out.size();
  run_.Finish(out);
  if (!prompt_tail_.empty()) DropPromptTail(begin, out);
}

}  // namespace vllm::tokenizer
