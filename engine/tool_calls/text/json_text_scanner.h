// JsonTextScanner: checks one JSON value byte by byte (RFC 8259) and finds its end. Owned by a reader of calls; one
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/tool_calls/syntax/tool_set.h"

namespace vllm {

// The deepest nesting of arguments. Grammars that constrain calls allow less: a level takes at least one of their open
// rules, of which there are at most RowStore::kMaxDepth.
inline constexpr size_t kMaxArgumentDepth = 1024;

class JsonTextScanner {
 public:
  enum class Result : uint8_t {
    kMore,
    kDone,        // the value ends with this byte
    kDoneBefore,  // the value, a number, ended before this byte
    kInvalid,
  };

  // Appends the byte to `out`, escaped if it is a control character inside a string: models write raw line breaks
  // there. White space before the value is skipped. Surrogates must be in pairs.
  Result Feed(char c, std::string& out);
  // Returns true if the text so far is a value. A number is, as long as a digit is its last byte.
  bool is_complete() const { return depth() == 0 && (state_ == State::kEnd || IsCompleteNumber()); }
  // Returns the type of the value, as one bit; kJsonInteger for numbers without fraction and exponent. 0 at the start.
  JsonTypes type() const { return type_; }

 private:
  enum class State : uint8_t {
    kValue,
    kFirstElement,
    kFirstKey,
    kKey,
    kColon,
    kAfterElement,
    kString,
    kEscape,
    kHex,
    kLowSurrogateSlash,
    kLowSurrogateU,
    kLiteral,
    kMinus,
    kZero,
    kInteger,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kEnd,
  };
  size_t depth() const { return stack_.size(); }
  bool IsCompleteNumber() const {
    return state_ == State::kZero || state_ == State::kInteger || state_ == State::kFraction ||
           state_ == State::kExponentDigits;
  }
  Result BeginValue(char c);
  Result EndValue();
  Result Open(char c, State state);
  Result Close(char open);
  Result FeedHex(char c);
  Result FeedNumber(char c);
  void SetType(JsonTypes type) {
    if (stack_.empty()) type_ = type;
  }

  State state_ = State::kValue;
  std::string stack_;  // '{' or '[' of each open container
  JsonTypes type_ = 0;
  bool is_key_ = false;
  std::string_view literal_;
  size_t literal_size_ = 0;
  uint32_t hex_ = 0;
  int num_hex_ = 0;
  bool is_low_surrogate_ = false;
};

// Returns the type of `text` as one bit if it is exactly one JSON value, with white space around it, else 0.
JsonTypes JsonTypeOf(std::string_view text);

}  // namespace vllm
