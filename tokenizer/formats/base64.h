// Base64 with the standard alphabet and padding (RFC 4648). Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm::tokenizer {

// Throws TokenizerError if `text` is not valid base64. `where` names the source in error messages.
std::string DecodeBase64(std::string_view text, const std::string& where);

std::string EncodeBase64(std::string_view bytes);

}  // namespace vllm::tokenizer
