// SafeText: text that cannot drive a terminal, the only kind OutputStream writes. Made from anything by a filter that
// shows control characters instead of sending them: C0 except \n and \t, DEL, C1 (raw or as U+0080..9F), bidirectional
// controls, tag characters, line and paragraph separators appear as <1b>, <9b>, <202e>; bytes that are not UTF-8
// appear as U+FFFD. A plain value.
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

// Whether a code point is shown as <hex> instead of being written.
bool IsUnsafeCodePoint(uint32_t code_point);

// The same over a stream: pieces may be cut anywhere, also inside a character or a control sequence.
class SafeTextFilter {
 public:
  // Appends to `out` what is certain; an unfinished character waits for its rest.
  void Feed(std::string_view untrusted, SafeText& out);
  // Ends the stream: an unfinished character becomes U+FFFD. The filter is as new afterwards.
  void Flush(SafeText& out);

 private:
  void Put(uint32_t code_point, std::string& out);

  uint32_t code_point_ = 0;
  int num_needed_ = 0;  // continuation bytes still to come
  uint8_t lower_ = 0x80;
  uint8_t upper_ = 0xBF;
};

// `json` as one line of JSON that holds no unsafe code point: those inside strings are written \uXXXX.
// REQUIRES: `json` is valid JSON in UTF-8 without raw control characters, as a serializer makes it.
SafeText SafeJson(std::string_view json);

}  // namespace vllm
