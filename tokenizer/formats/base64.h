// Base64 with the standard alphabet, as tokenizer.json and tiktoken files carry bytes. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm {

// Throws TokenizerError when text is not base64; `where` names its owner.
std::string DecodeBase64(std::string_view text, const std::string& where);

}  // namespace vllm
