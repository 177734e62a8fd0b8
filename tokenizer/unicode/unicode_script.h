// The script of a code point, from Oniguruma's tables. Any thread; the table is built on first use.
#pragma once

#include <cstdint>
#include <vector>

namespace vllm::tokenizer {

class ScriptTable {
 public:
  // The value for characters that match every script: the space and characters without a script in Unicode 9.
  static constexpr uint8_t kNoScript = 0;

  static const ScriptTable& Get();

  // Returns the number of the script. Han, Hiragana and Katakana have the same number.
  uint8_t ScriptOf(char32_t code_point) const { return scripts_[code_point]; }

 private:
  ScriptTable();
  std::vector<uint8_t> scripts_;
};

}  // namespace vllm::tokenizer
