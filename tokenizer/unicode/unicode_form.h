// The Unicode normalization forms, by utf8proc's tables as far as Unicode 9 goes, which is what the reference knows.
// Pure functions, any thread.
// Unlike utf8proc_map this is O(n log n) on any text: utf8proc orders combining marks by exchanging neighbours, which
// on a hostile run of marks is quadratic.
#pragma once

#include <string>

namespace vllm {

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// REQUIRES: text is valid UTF-8; it still is afterwards.
void NormalizeUnicode(UnicodeForm form, std::string& text);

}  // namespace vllm
