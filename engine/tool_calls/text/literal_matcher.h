// LiteralMatcher: decides byte by byte which of a few texts comes next, after any white space. Owned by a reader of
// calls; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// Returns `text` without the white space at its ends.
std::string_view StripSpace(std::string_view text);

class LiteralMatcher {
 public:
  enum class Result : uint8_t { kMore, kMatched, kFailed };

  // `choices` have no white space at their ends. Empty ones never match. None is a prefix of another. They are
  // borrowed.
  void Reset(std::vector<std::string_view> choices);

  Result Feed(char c);
  // The index of the text, after kMatched.
  size_t index() const { return index_; }
  // True if a text has begun.
  bool has_begun() const { return size_ > 0; }

 private:
  std::vector<std::string_view> choices_;
  size_t size_ = 0;   // of the part that has been read
  size_t index_ = 0;  // of a choice that begins with that part
};

}  // namespace vllm
