// SafeText: text that cannot control a terminal, the only type that OutputStream writes. A plain value. A filter makes
// it from untrusted text and shows some characters in hex, such as <1b>, <9b>, <202e> and <200b>: C0 except \n and \t,
// DEL, C1, bidirectional controls, line and paragraph separators, and invisible characters, such as tags, zero-width
// spaces, joiners and variation selectors. Bytes that are not UTF-8, such as raw C1, become U+FFFD. Joiners are kept
// where they are part of writing: ZWJ and ZWNJ in scripts that join or stack letters, such as Arabic and Devanagari,
// and ZWJ and variation selectors 15 and 16 after an emoji.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::app {

class SafeText {
 public:
  SafeText() = default;
  explicit SafeText(std::string_view untrusted);

  std::string_view view() const { return text_; }
  bool empty() const { return text_.empty(); }
  void Clear() { text_.clear(); }
  // Returns the bytes from `begin` to `end`. REQUIRES: both are boundaries between characters.
  SafeText Part(size_t begin, size_t end) const {
    SafeText part;
    part.text_ = text_.substr(begin, end - begin);
    return part;
  }
  SafeText& operator+=(const SafeText& other) {
    text_ += other.text_;
    return *this;
  }

 private:
  friend class SafeTextFilter;
  std::string text_;
};

// Returns true if a code point is always shown as <hex>.
bool IsUnsafeCodePoint(uint32_t code_point);
// Returns true for ZWNJ, ZWJ and variation selectors 15 and 16. They are written only after a character that they can
// join or modify, and are otherwise shown as <hex>.
bool IsJoiningCodePoint(uint32_t code_point);

// Filters text that arrives in pieces. A piece may end anywhere, even inside a character or a control sequence.
class SafeTextFilter {
 public:
  // Appends the filtered text to `out`. Keeps an incomplete character until its other bytes arrive.
  void Feed(std::string_view untrusted, SafeText& out);
  // Ends the text and resets the filter. An incomplete character becomes U+FFFD.
  void Flush(SafeText& out);

 private:
  void Put(uint32_t code_point, std::string& out);

  uint32_t previous_ = 0;   // the last code point; 0 if it was shown as <hex> or is a joiner other than VS16
  std::string incomplete_;  // the bytes of an incomplete character, at most 3
};

// Returns `untrusted` as one line, with line breaks shown as \n.
SafeText SafeLine(std::string_view untrusted);

// Returns `json` with \uXXXX escapes in place of the unsafe and joining code points inside strings.
// REQUIRES: `json` is valid UTF-8 and valid JSON without raw C0 control characters, as DumpJson writes it.
SafeText SafeJson(std::string_view json);

}  // namespace vllm::app
