// Metaspace: U+2581, which many vocabularies write instead of a space. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace vllm::tokenizer {

inline constexpr std::string_view kMetaspace = "\xE2\x96\x81";

// Returns the end of the word that starts at `start`: a run of U+2581, which may be empty, then everything up to the
// next U+2581 or the end of `text`.
inline size_t MetaspaceWordEnd(std::string_view text, size_t start) {
  size_t end = start;
  while (text.substr(end, kMetaspace.size()) == kMetaspace) end += kMetaspace.size();
  return std::min(text.find(kMetaspace, end), text.size());
}

}  // namespace vllm::tokenizer
