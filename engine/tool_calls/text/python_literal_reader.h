// PythonLiteralReader: converts one Python literal to JSON byte by byte: strings, numbers, True, False, None, lists,
// tuples and dicts. JSON values are accepted too. Owned by a reader of calls; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm {

class PythonLiteralReader {
 public:
  enum class Result : uint8_t {
    kMore,
    kDone,        // the literal ends with this byte
    kDoneBefore,  // the literal, a number or a name, ended before this byte
    kInvalid,
  };
  static constexpr size_t kMaxNumberBytes = 4096;

  // Appends JSON to `out`. White space outside strings is not copied.
  Result Feed(char c, std::string& out);
  // Ends the input. Returns true if the text so far is a literal.
  bool Finish(std::string& out);

 private:
  enum class State : uint8_t { kValue, kKey, kColon, kAfterElement, kString, kEscape, kDigits, kWord, kEnd };
  Result BeginValue(char c, std::string& out);
  Result EndValue();
  Result Close(char c, std::string& out);
  bool EndWord(std::string& out);
  Result FeedString(char c, std::string& out);
  bool FeedEscape(char c, std::string& out);
  bool FeedDigits(char c, std::string& out);
  void EndCodePoint(std::string& out);

  State state_ = State::kValue;
  std::string stack_;  // the opening bracket of each open container
  bool is_first_ = true;
  bool is_key_ = false;
  char quote_ = '"';
  std::string word_;
  uint32_t code_point_ = 0;
  int num_digits_left_ = 0;
  int base_ = 16;
  uint32_t high_surrogate_ = 0;
};

// Returns the JSON of a text that is exactly one literal, or "".
std::string PythonLiteralToJson(std::string_view text);

}  // namespace vllm
