// How the byte-level vocabularies of GGUF files want text split: what each name of tokenizer.ggml.pre stands for.
// Read-only values, any thread.
#pragma once

#include <array>
#include <string_view>

namespace vllm {

struct GgufPreTokenizer {
  std::array<std::string_view, 6> regexes;  // applied one after the other; empty ones are none
  bool ignore_merges = false;               // a word that is a token is that token
  bool add_bos = false;                     // unless the file says otherwise
};

// Null for a name that is not known. An empty name is "default".
const GgufPreTokenizer* FindGgufPreTokenizer(std::string_view name);

}  // namespace vllm
