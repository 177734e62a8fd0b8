// SafeText: text that cannot drive a terminal, the only kind OutputStream writes. Made from anything by a filter that
// shows control characters instead of sending them: C0 except \n and \t, DEL, C1 (raw or as U+0080..9F), bidirectional
// controls, line and paragraph separators, and characters that nobody sees, such as tags, zero-width spaces, joiners
// and variation selectors, appear as <1b>, <9b>, <202e>, <200b>; bytes that are not UTF-8 appear as U+FFFD. Joiners are
// kept where they are part of writing: ZWJ and ZWNJ after letters and marks of scripts that join or stack, such as
// Arabic and Devanagari, ZWJ and variation selectors 15 and 16 after an emoji. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm {

class SafeText {
 public:
  SafeText() = default;
  explicit SafeText(std::string_view untrusted);

  std::string_view view() const { return text_; }
  bool empty() const { return text_.empty(); }
  void Clear() { text_.clear(); }
  SafeText& operator+=(const SafeText& other) {
    text_ += other.text_;
    return *this;
  }

 private:
  friend class SafeTextFilter;
  std::string text_;
};

// Whether a code point is shown as <hex> instead of being written, wherever it stands.
bool IsUnsafeCodePoint(uint32_t code_point);
// Whether a code point is written only behind a character that takes it: ZWNJ, ZWJ, variation selectors 15 and 16.
bool IsJoiningCodePoint(uint32_t code_point);

// The same over a stream: pieces may be cut anywhere, also inside a character or a control sequence.
class SafeTextFilter {
 public:
  // Appends to `out` what is certain; an unfinished character waits for its rest.
  void Feed(std::string_view untrusted, SafeText& out);
  // Ends the stream: an unfinished character becomes U+FFFD. The filter is as new afterwards.
  void Flush(SafeText& out);

 private:
  void Put(uint32_t code_point, std::string& out);

  uint32_t previous_ = 0;   // the last code point, for what may follow it; 0: none
  std::string incomplete_;  // the first bytes of a character whose other bytes have not arrived; at most 3
};

// `untrusted` as one line: line breaks are shown as \n.
SafeText SafeLine(std::string_view untrusted);

// `json` as one line of JSON that holds no unsafe code point: those inside strings are written \uXXXX.
// REQUIRES: `json` is valid JSON in UTF-8 without raw control characters, as a serializer makes it.
SafeText SafeJson(std::string_view json);

}  // namespace vllm
