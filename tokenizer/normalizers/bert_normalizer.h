// The normalizer of BERT: removes control characters, turns whitespace into spaces, puts spaces around Chinese
// characters, removes accents and lowercases. Each step is optional. Owned by the Tokenizer. Read-only after
// construction, any thread.
#pragma once

#include <string>

#include "tokenizer/normalizers/normalizer.h"

namespace vllm::tokenizer {

struct BertNormalizerConfig {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(BertNormalizerConfig config);
  void Apply(std::string& text) const override;

 private:
  BertNormalizerConfig config_;
};

// Returns true if BERT puts spaces around the character.
bool IsBertChinese(char32_t code_point);

}  // namespace vllm::tokenizer
