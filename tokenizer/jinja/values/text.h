// Python's view of UTF-8 text: code points, whitespace and line ends. Pure functions, any thread.
// A byte that is not part of valid UTF-8 counts as one code point, U+FFFD. Functions that return a part of the text
// keep such bytes unchanged.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer::jinja {

// Returns the code point at `position` and advances past it. REQUIRES: position < text.size().
char32_t NextCodePoint(std::string_view text, size_t& position);
// Returns the byte offset of the last code point. REQUIRES: text is not empty.
size_t LastCodePoint(std::string_view text);
size_t NumCodePoints(std::string_view text);
// Returns the byte offset of code point `index`, or text.size() if the text has fewer code points.
size_t CodePointOffset(std::string_view text, size_t index);

bool IsSpace(char32_t code_point);
// Returns true for ASCII digits only.
bool IsDigit(char32_t code_point);
// Approximates Python's str.isprintable: most unassigned code points and rare format characters below U+E0000 count as
// printable, and no code point from U+E0000 on does.
bool IsPrintable(char32_t code_point);

std::string_view StripLeft(std::string_view text);
std::string_view StripRight(std::string_view text);
// StripLeft removes the leading code points that are in `chars`, and StripRight the trailing ones.
std::string_view StripLeft(std::string_view text, std::string_view chars);
std::string_view StripRight(std::string_view text, std::string_view chars);

// Python's str.splitlines().
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends = false);

// Linear-time searches that return npos if the needle is absent. SearchCost returns the number of bytes to pass to
// Budget::SpendBytes for one search. With a needle of more than 64 bytes, a search costs 8 times as much per byte,
// because the needle may almost match at many positions.
size_t SearchCost(std::string_view text, std::string_view needle);
size_t FindText(std::string_view text, std::string_view needle, size_t from = 0);
size_t FindTextLast(std::string_view text, std::string_view needle);

// markupsafe.escape.
std::string EscapeHtml(std::string_view text);

}  // namespace vllm::tokenizer::jinja
