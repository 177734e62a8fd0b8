// Fuzzes the filter for text that goes to a terminal. The result must be valid UTF-8, must contain no unsafe code
// points and no control bytes except newline and tab, and must be the same if the input arrives in pieces of three
// bytes.
#include <string>

#include "app/terminal/safe_text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  const app::SafeText whole{bytes};
  for (const char c : whole.view()) {
    const auto byte = static_cast<unsigned char>(c);
    Require(byte >= 0x20 || c == '\n' || c == '\t', "no control byte except newline and tab");
    Require(byte != 0x7F, "no DEL");
  }
  Require(tokenizer::IsValidUtf8(whole.view()), "the text is UTF-8");
  for (size_t i = 0; i < whole.view().size();) {
    const tokenizer::CodePoint c = tokenizer::CodePointAt(whole.view(), i);
    Require(!app::IsUnsafeCodePoint(c.value), "no unsafe code point");
    i += c.length;
  }
  app::SafeTextFilter filter;
  app::SafeText pieces;
  for (size_t i = 0; i < bytes.size(); i += 3) filter.Feed(bytes.substr(i, 3), pieces);
  filter.Flush(pieces);
  Require(pieces.view() == whole.view(), "pieces give the same text as the whole input");
}

}  // namespace vllm
