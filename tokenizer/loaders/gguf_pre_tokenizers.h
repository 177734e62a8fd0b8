// The pre-tokenizers of byte-level vocabularies in GGUF files, looked up by their name in tokenizer.ggml.pre.
// Constants, any thread.
#pragma once

#include <array>
#include <string_view>

namespace vllm::tokenizer {

struct GgufPreTokenizer {
  std::array<std::string_view, 6> regexes;  // applied in order; empty ones are unused
  bool ignore_merges = false;               // a word that is a token becomes that token without merging
  bool add_bos = false;                     // the default; the file may override it
};

// Returns null for an unknown name. An empty name means "default".
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);

}  // namespace vllm::tokenizer
