// The script of a code point, from Oniguruma's tables. Built on first use; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace vllm {

class ScriptTable {
 public:
  // Of characters that go with any script: unassigned ones and the space.
  static constexpr uint8_t kNoScript = 0;

  static const ScriptTable& Get();

  // A number for each script, the same for Han, Hiragana and Katakana.
  uint8_t ScriptOf(char32_t code_point) const { return scripts_[code_point]; }

 private:
  ScriptTable();
  std::vector<uint8_t> scripts_;
};

}  // namespace vllm
