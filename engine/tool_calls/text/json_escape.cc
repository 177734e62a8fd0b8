#include "engine/tool_calls/text/json_escape.h"

#include "tokenizer/unicode/utf8.h"

namespace vllm {

void AppendJsonEscaped(char c, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

void AppendJsonEscaped(std::string_view text, std::string& out) {
  for (const char c : text) AppendJsonEscaped(c, out);
}

std::string JsonStringText(std::string_view text) {
  std::string out = "\"";
  AppendJsonEscaped(text, out);
  out += '"';
  return out;
}

void AppendScalarValue(uint32_t code_point, std::string& out) {
  const bool is_scalar = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point >= 0xE000);
  tokenizer::AppendCodePoint(is_scalar ? code_point : 0xFFFD, out);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace vllm
