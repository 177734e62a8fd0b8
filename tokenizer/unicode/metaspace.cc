#include "tokenizer/unicode/metaspace.h"

#include <algorithm>

namespace vllm {

size_t MetaspaceWordEnd(std::string_view text, size_t start) {
  size_t end = start;
  while (text.substr(end, kMetaspace.size()) == kMetaspace) end += kMetaspace.size();
  return std::min(text.find(kMetaspace, end), text.size());
}

}  // namespace vllm
