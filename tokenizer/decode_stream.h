// Incremental decoding: the text of a sequence of tokens while they are being generated. Owned by one request, used
// from one thread; the Tokenizer must outlive it.
// Invariant 1: what Feed and Flush append is always valid UTF-8.
// Invariant 2: Prime(p), Feed of every id of g and Flush together append t, where Decode(p + g) is t behind what it has
// in common with Decode(p): nothing of the prompt is ever repeated, such as its last line break.
// Text is withheld only while a later token could still change it: bytes of an incomplete character, a run of byte
// tokens ("<0xE2>"), the last token where a decoder treats the last one differently.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tokenizer/decoders/token_decoder.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

class DecodeStream {
 public:
  DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens);

  // Takes the prompt as context. To be called before the first Feed, if at all.
  void Prime(std::span<const int32_t> prompt_ids);
  // Appends the text that is certain now. An id without a token is skipped.
  void Feed(int32_t id, std::string& out);
  // Appends the rest; bytes of an incomplete character become U+FFFD. Nothing may be fed afterwards.
  void Flush(std::string& out);

 private:
  // Removes from out[begin..] what is still prompt text.
  void DropPromptTail(size_t begin, std::string& out);

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  DecoderRun run_;
  std::string prompt_tail_;  // text of the prompt that run_ still withholds; not to be given out
};

}  // namespace vllm
