#include "app/terminal/safe_text.h"

#include <array>
#include <cstdio>

namespace vllm {
namespace {

void AppendUtf8(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

constexpr uint32_t kReplacement = 0xFFFD;

}  // namespace

bool IsUnsafeCodePoint(uint32_t c) {
  if (c < 0x20) return c != '\n' && c != '\t';
  if (c >= 0x7F && c <= 0x9F) return true;
  if (c == 0x061C || c == 0x200E || c == 0x200F) return true;  // marks
  if (c >= 0x2028 && c <= 0x202E) return true;                 // separators, embeddings, overrides
  if (c >= 0x2066 && c <= 0x2069) return true;                 // isolates
  if (c >= 0xFFF9 && c <= 0xFFFB) return true;                 // interlinear annotation
  return c >= 0xE0000 && c <= 0xE007F;                         // tags
}

void SafeTextFilter::Put(uint32_t code_point, std::string& out) {
  if (IsUnsafeCodePoint(code_point)) {
    std::array<char, 16> shown{};
    const int length = std::snprintf(shown.data(), shown.size(), "<%02x>", code_point);
    out.append(shown.data(), static_cast<size_t>(length));
  } else {
    AppendUtf8(code_point, out);
  }
}

// The decoder of the WHATWG Encoding Standard: the longest valid prefix of a bad sequence becomes one U+FFFD. A lone
// byte 80..9F is an 8-bit C1 control for some terminals; like any other bad byte it never gets out.
void SafeTextFilter::Feed(std::string_view untrusted, SafeText& safe) {
  std::string& out = safe.text_;
  size_t i = 0;
  while (i < untrusted.size()) {
    const uint8_t byte = static_cast<uint8_t>(untrusted[i]);
    if (num_needed_ > 0) {
      if (byte < lower_ || byte > upper_) {
        num_needed_ = 0;
        lower_ = 0x80;
        upper_ = 0xBF;
        AppendUtf8(kReplacement, out);
        continue;  // this byte begins something new
      }
      lower_ = 0x80;
      upper_ = 0xBF;
      code_point_ = (code_point_ << 6) | (byte & 0x3F);
      if (--num_needed_ == 0) Put(code_point_, out);
    } else if (byte < 0x80) {
      Put(byte, out);
    } else if (byte >= 0xC2 && byte <= 0xDF) {
      num_needed_ = 1;
      code_point_ = byte & 0x1F;
    } else if (byte >= 0xE0 && byte <= 0xEF) {
      if (byte == 0xE0) lower_ = 0xA0;
      if (byte == 0xED) upper_ = 0x9F;
      num_needed_ = 2;
      code_point_ = byte & 0x0F;
    } else if (byte >= 0xF0 && byte <= 0xF4) {
      if (byte == 0xF0) lower_ = 0x90;
      if (byte == 0xF4) upper_ = 0x8F;
      num_needed_ = 3;
      code_point_ = byte & 0x07;
    } else {
      AppendUtf8(kReplacement, out);
    }
    ++i;
  }
}

void SafeTextFilter::Flush(SafeText& safe) {
  if (num_needed_ > 0) AppendUtf8(kReplacement, safe.text_);
  *this = SafeTextFilter();
}

SafeText::SafeText(std::string_view untrusted) {
  SafeTextFilter filter;
  filter.Feed(untrusted, *this);
  filter.Flush(*this);
}

SafeText SafeJson(std::string_view json) {
  // Copies runs of ASCII whole; a multi-byte character is decoded only to see whether it must be escaped.
  std::string escaped;
  escaped.reserve(json.size());
  size_t i = 0;
  const auto escape = [&escaped](uint32_t c) {
    std::array<char, 16> buffer{};
    int length = 0;
    if (c >= 0x10000) {
      const uint32_t v = c - 0x10000;
      length = std::snprintf(buffer.data(), buffer.size(), "\\u%04x\\u%04x", 0xD800 + (v >> 10), 0xDC00 + (v & 0x3FF));
    } else {
      length = std::snprintf(buffer.data(), buffer.size(), "\\u%04x", c);
    }
    escaped.append(buffer.data(), static_cast<size_t>(length));
  };
  while (i < json.size()) {
    const uint8_t byte = static_cast<uint8_t>(json[i]);
    if (byte < 0x80) {
      if (byte == 0x7F) {
        escape(byte);
      } else {
        escaped.push_back(static_cast<char>(byte));
      }
      ++i;
      continue;
    }
    const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    if (i + length > json.size()) break;
    uint32_t c = byte & (0xFFu >> (length + 1));
    for (size_t k = 1; k < length; ++k) c = (c << 6) | (static_cast<uint8_t>(json[i + k]) & 0x3F);
    if (IsUnsafeCodePoint(c)) {
      escape(c);
    } else {
      escaped.append(json, i, length);
    }
    i += length;
  }
  return SafeText(escaped);
}

}  // namespace vllm
