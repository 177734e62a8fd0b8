#include "tokenizer/unicode/oniguruma.h"

#include <oniguruma.h>

#include <stdexcept>
#include <string>

namespace vllm::tokenizer {

void InitializeOniguruma() {
  static const int status = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  if (status != ONIG_NORMAL) throw std::runtime_error("initializing oniguruma: error code " + std::to_string(status));
}

}  // namespace vllm::tokenizer
