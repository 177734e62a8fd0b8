#include "engine/tool_calls/text/json_string_decoder.h"

#include <string_view>

#include "engine/tool_calls/text/json_escape.h"

namespace vllm {

JsonStringDecoder::Result JsonStringDecoder::Feed(char c, std::string& out) {
  switch (state_) {
    case State::kText:
      if (c == '"') return Result::kDone;
      if (c == '\\') {
        state_ = State::kEscape;
      } else {
        out += c;
      }
      return Result::kMore;
    case State::kEscape: {
      if (c == 'u') {
        hex_ = 0;
        num_hex_ = 0;
        state_ = State::kHex;
        return Result::kMore;
      }
      constexpr std::string_view kEscapes = "\"\\/bfnrt";
      const size_t index = kEscapes.find(c);
      if (index == std::string_view::npos) return Result::kInvalid;
      out += "\"\\/\b\f\n\r\t"[index];
      state_ = State::kText;
      return Result::kMore;
    }
    case State::kLowSlash:
      state_ = State::kLowU;
      return c == '\\' ? Result::kMore : Result::kInvalid;
    case State::kLowU:
      hex_ = 0;
      num_hex_ = 0;
      state_ = State::kHex;
      return c == 'u' ? Result::kMore : Result::kInvalid;
    case State::kHex:
      break;
  }
  const int digit = HexDigit(c);
  if (digit < 0) return Result::kInvalid;
  hex_ = hex_ * 16 + static_cast<uint32_t>(digit);
  if (++num_hex_ < 4) return Result::kMore;
  state_ = State::kText;
  const bool is_low = hex_ >= 0xDC00 && hex_ < 0xE000;
  if (is_low != (high_surrogate_ != 0)) return Result::kInvalid;
  if (is_low) {
    AppendScalarValue(0x10000 + ((high_surrogate_ - 0xD800) << 10) + (hex_ - 0xDC00), out);
    high_surrogate_ = 0;
  } else if (hex_ >= 0xD800 && hex_ < 0xDC00) {
    high_surrogate_ = hex_;
    state_ = State::kLowSlash;
  } else {
    AppendScalarValue(hex_, out);
  }
  return Result::kMore;
}

}  // namespace vllm
