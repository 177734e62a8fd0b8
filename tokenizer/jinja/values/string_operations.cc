#include "tokenizer/jinja/values/string_operations.h"

#include <algorithm>
#include <charconv>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::tokenizer::jinja {
namespace {

std::vector<std::string_view> SplitAtSpaces(Budget& budget, std::string_view text, int64_t max_splits,
                                            bool from_right) {
  std::vector<std::string_view> words;
  std::string_view rest = from_right ? StripRight(text) : StripLeft(text);
  while (!rest.empty()) {
    budget.Spend(1);
    if (max_splits >= 0 && static_cast<int64_t>(words.size()) == max_splits) {
      words.push_back(rest);
      break;
    }
    if (!from_right) {
      size_t end = 0;
      for (size_t i = 0; i < rest.size(); end = i) {
        if (IsSpace(NextCodePoint(rest, i))) break;
      }
      words.push_back(rest.substr(0, end));
      rest = StripLeft(rest.substr(end));
    } else {
      // Move to the start of the word. Skip continuation bytes first, so that IsSpace receives whole code points.
      size_t start = rest.size();
      while (start > 0) {
        size_t previous = start - 1;
        while (previous > 0 && (rest[previous] & 0xc0) == 0x80) --previous;
        size_t position = previous;
        if (IsSpace(NextCodePoint(rest, position))) break;
        start = previous;
      }
      words.push_back(rest.substr(start));
      rest = StripRight(rest.substr(0, start));
    }
  }
  if (from_right) std::reverse(words.begin(), words.end());
  return words;
}

// Appends `text` to `out` without single underscores between two digits, which Python allows. Returns false if `text`
// has any other underscore. `is_digit` takes an unsigned char; for int(text, base), letters are digits too.
template <typename Predicate>
bool DropUnderscores(std::string_view text, const Predicate& is_digit, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    const bool between = i > 0 && i + 1 < text.size() && is_digit(static_cast<unsigned char>(text[i - 1])) &&
                         is_digit(static_cast<unsigned char>(text[i + 1]));
    if (!between) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string_view> SplitText(Budget& budget, std::string_view text, const std::string* separator,
                                        int64_t max_splits, bool from_right) {
  if (separator == nullptr) return SplitAtSpaces(budget, text, max_splits, from_right);
  if (separator->empty()) throw EvalError("empty separator");
  budget.SpendBytes(SearchCost(text, *separator));
  std::vector<std::string_view> parts;
  const auto may_split = [&] { return max_splits < 0 || static_cast<int64_t>(parts.size()) < max_splits; };
  if (!from_right) {
    size_t found = 0;
    while (may_split() && (found = FindText(text, *separator)) != text.npos) {
      budget.Spend(1);
      parts.push_back(text.substr(0, found));
      text.remove_prefix(found + separator->size());
    }
    parts.push_back(text);
    return parts;
  }
  // Search the reversed text, because std::string_view::rfind takes quadratic time on "aaaa...".
  const std::string mirrored(text.rbegin(), text.rend());
  const std::string needle(separator->rbegin(), separator->rend());
  size_t end = text.size();
  size_t from = 0;
  while (may_split() && (from = FindText(mirrored, needle, from)) != std::string_view::npos) {
    budget.Spend(1);
    const size_t stop = text.size() - from;
    parts.push_back(text.substr(stop, end - stop));
    end = stop - separator->size();
    from += separator->size();
  }
  parts.push_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string ReplaceText(Budget& budget, std::string_view text, std::string_view from, std::string_view to,
                        int64_t count) {
  budget.SpendBytes(SearchCost(text, from) + to.size());
  std::string result;
  const auto append = [&](std::string_view part) {
    Budget::CheckText(result.size() + part.size());
    result += part;
  };
  const auto more = [&] { return count < 0 || count-- > 0; };
  if (from.empty()) {
    size_t position = 0;
    while (more()) {
      budget.Spend(1);
      append(to);
      if (position >= text.size()) return result;
      const size_t start = position;
      NextCodePoint(text, position);
      append(text.substr(start, position - start));
    }
    append(text.substr(position));
    return result;
  }
  size_t position = 0;
  for (;;) {
    const size_t found = FindText(text, from, position);
    if (found == text.npos || !more()) break;
    budget.SpendBytes(to.size());
    append(text.substr(position, found - position));
    append(to);
    position = found + from.size();
  }
  append(text.substr(position));
  return result;
}

std::string PadText(std::string_view text, int64_t width, std::string_view fill, int side) {
  const auto length = static_cast<int64_t>(NumCodePoints(text));
  const int64_t pad = std::max<int64_t>(width, length) - length;
  if (pad > static_cast<int64_t>(Budget::kMaxTextBytes)) Budget::CheckText(Budget::kMaxTextBytes + 1);
  Budget::CheckText(text.size() + static_cast<size_t>(pad) * fill.size());
  int64_t left = side < 0 ? 0 : side > 0 ? pad : pad / 2 + (pad & width & 1);
  std::string result;
  result.reserve(text.size() + static_cast<size_t>(pad) * fill.size());
  const auto append = [&](int64_t count) {
    if (fill.size() == 1) {
      result.append(static_cast<size_t>(count), fill[0]);
    } else {
      for (int64_t i = 0; i < count; ++i) result += fill;
    }
  };
  append(left);
  result += text;
  append(pad - left);
  return result;
}

void AppendEscape(char32_t code_point, std::string& text) {
  char buffer[16];
  const char* const format = code_point < 0x100 ? "\\x%02x" : code_point < 0x10000 ? "\\u%04x" : "\\U%08x";
  std::snprintf(buffer, sizeof buffer, format, static_cast<unsigned>(code_point));
  text += buffer;
}

bool HasOnlyCase(std::string_view text, bool upper) {
  bool cased = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (upper ? IsLower(c) : IsUpper(c)) return false;
    cased = cased || (upper ? IsUpper(c) : IsLower(c));
  }
  return cased;
}

bool ParseFloat(std::string_view text, double& value) {
  std::string digits;
  if (!DropUnderscores(StripLeft(StripRight(text)), IsDigit, digits) || digits.empty()) return false;
  std::string_view rest = digits;
  const bool negative = rest[0] == '-';
  if (rest[0] == '-' || rest[0] == '+') rest.remove_prefix(1);
  const std::string lower = ToLower(rest.substr(0, 9));
  if (rest.size() <= 8 && (lower == "inf" || lower == "infinity" || lower == "nan")) {
    value = lower == "nan" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else {
    if (rest.empty() || (rest[0] != '.' && !(rest[0] >= '0' && rest[0] <= '9'))) return false;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end != rest.data() + rest.size()) return false;
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
    // from_chars reports overflow and underflow with the same error and no value. In the C locale, strtod reads what
    // from_chars accepts.
    if (error == std::errc::result_out_of_range) value = strtod_l(std::string(rest).c_str(), nullptr, c_locale);
  }
  if (negative) value = -value;
  return true;
}

bool ParseInteger(std::string_view text, int64_t base, int64_t& value) {
  if (base != 0 && (base < 2 || base > 36)) return false;
  std::string_view rest = StripLeft(StripRight(text));
  const bool negative = !rest.empty() && rest[0] == '-';
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  if (rest.size() > 2 && rest[0] == '0') {
    const char prefix = static_cast<char>(rest[1] | 0x20);
    const int64_t radix = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    if (radix != 0 && (base == radix || base == 0)) {
      rest.remove_prefix(2);
      if (rest[0] == '_') rest.remove_prefix(1);
      base = radix;
    }
  }
  std::string digits;
  const auto is_alphanumeric = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (!DropUnderscores(rest, is_alphanumeric, digits) || digits.empty()) return false;
  if (base == 0 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos) return false;
  if (digits[0] == '-' || digits[0] == '+') return false;
  if (negative) digits.insert(digits.begin(), '-');
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base == 0 ? 10 : static_cast<int>(base));
  if (error == std::errc::result_out_of_range && end == digits.data() + digits.size()) {
    throw EvalError("integer is out of range (64 bits)");
  }
  return error == std::errc() && end == digits.data() + digits.size();
}

}  // namespace vllm::tokenizer::jinja
