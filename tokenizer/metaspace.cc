#include "tokenizer/metaspace.h"

#include <algorithm>

namespace vllm {

bool NoTokenContinuesIntoMetaspace(const Vocabulary& vocabulary) {
  if (vocabulary.Find(kMetaspace) < 0) return false;
  for (int32_t id = 0; id < vocabulary.IdLimit(); ++id) {
    const std::string_view token = vocabulary.TokenOf(id).value_or("");
    const size_t last = token.rfind(kMetaspace);
    if (last == token.npos || last == 0) continue;
    for (size_t position = 0; position < last; position += kMetaspace.size()) {
      if (token.substr(position, kMetaspace.size()) != kMetaspace) return false;
    }
  }
  return true;
}

size_t MetaspaceWordEnd(std::string_view text, size_t start) {
  size_t end = start;
  while (text.substr(end, kMetaspace.size()) == kMetaspace) end += kMetaspace.size();
  return std::min(text.find(kMetaspace, end), text.size());
}

}  // namespace vllm
