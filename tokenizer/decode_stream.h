// Incremental decoding: turns tokens into text while they are generated. Owned by one request and used by one thread.
// The Tokenizer must outlive it.
// Invariant 1: Feed and Flush append only valid UTF-8.
// Invariant 2: after Prime(p), one Feed per id of g and a final Flush together append Decode(p + g) without its common
// prefix with Decode(p). So no text of the prompt, such as its last line break, is repeated.
// Text is withheld only while a later token could change it. Examples are the bytes of an incomplete character, a run
// of byte tokens ("<0xE2>"), and the last token if the decoder treats the last token differently.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tokenizer/decoders/token_decoder.h"
#include "tokenizer/tokenizer.h"

namespace vllm::tokenizer {

class DecodeStream {
 public:
  DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens);

  // Sets the prompt as context. Optional; must be called at most once, before the first Feed.
  void Prime(std::span<const int32_t> prompt_ids);
  // Feeds a token and appends the text that later tokens cannot change. Skips the same ids as Decode.
  void Feed(int32_t id, std::string& out);
  // Appends the withheld text. Bytes of an incomplete character become U+FFFD. Must be the last call.
  void Flush(std::string& out);

 private:
  // Removes the common prefix of prompt_tail_ and out[begin..] from both. Clears prompt_tail_ if the rest differs.
  void DropPromptTail(size_t begin, std::string& out);

  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  DecoderRun run_;
  std::string prompt_tail_;  // prompt text that run_ still withholds and that must not be appended
};

}  // namespace vllm::tokenizer
