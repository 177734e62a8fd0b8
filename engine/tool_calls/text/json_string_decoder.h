// JsonStringDecoder: decodes the contents of one JSON string byte by byte. Owned by a reader of calls; one thread.
#pragma once

#include <cstdint>
#include <string>

namespace vllm {

class JsonStringDecoder {
 public:
  enum class Result : uint8_t { kMore, kDone, kInvalid };

  // `c` is the next byte after the opening quote. Appends the decoded bytes to `out`. kDone: `c` is the closing quote.
  // Raw control characters are accepted. Surrogates must be in pairs.
  Result Feed(char c, std::string& out);

 private:
  enum class State : uint8_t { kText, kEscape, kHex, kLowSlash, kLowU };
  State state_ = State::kText;
  uint32_t hex_ = 0;
  int num_hex_ = 0;
  uint32_t high_surrogate_ = 0;
};

}  // namespace vllm
