#include "tokenizer/unicode/ascii.h"

#include <algorithm>
#include <cstring>

namespace vllm::tokenizer {

std::string LowerAscii(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerAscii(c);
  return lower;
}

size_t FindIgnoringCase(std::string_view text, std::string_view query) {
  const auto is_letter = [](char c) { return LowerAscii(c) >= 'a' && LowerAscii(c) <= 'z'; };
  if (std::none_of(query.begin(), query.end(), is_letter)) {
    const void* found = memmem(text.data(), text.size(), query.data(), query.size());
    return found == nullptr ? std::string_view::npos
                            : static_cast<size_t>(static_cast<const char*>(found) - text.data());
  }
  const auto equal = [](char a, char b) { return LowerAscii(a) == LowerAscii(b); };
  const auto* found = std::search(text.begin(), text.end(), query.begin(), query.end(), equal);
  return found == text.end() ? std::string_view::npos : static_cast<size_t>(found - text.begin());
}

}  // namespace vllm::tokenizer
