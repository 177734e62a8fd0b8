// The JSON numbers of a schema as sets of texts. Each number has one canonical text: no exponent, no -0, no zeros at
// the ends. Sets of numbers are sets of canonical texts, so they can be intersected and complemented as texts. Pure
// functions on a RegexStore; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// A decimal number: (-1)^negative x digits[0].digits[1]... without zeros at the ends of either part, except a whole
// part of "0". Zero is not negative.
struct Decimal {
  bool negative = false;
  std::string whole = "0";
  std::string fraction;
  bool is_zero() const { return whole == "0" && fraction.empty(); }
  std::string Text() const { return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction); }
  bool operator==(const Decimal&) const = default;
};

// Converts the text of a JSON number, which may have an exponent. Returns nullopt if it has more than kMaxDigits digits
// without the exponent.
inline constexpr int64_t kMaxDigits = 400;
std::optional<Decimal> ParseDecimal(std::string_view text);

RegexId AnyNumber(RegexStore& store);
RegexId AnyInteger(RegexStore& store);
// The numbers that are at least `bound`, or greater if `exclusive`.
RegexId NumbersFrom(RegexStore& store, const Decimal& bound, bool exclusive);
RegexId NumbersUpTo(RegexStore& store, const Decimal& bound, bool exclusive);
// The multiples of a positive number. Returns nullopt if its digits are a number above kMaxDivisor.
inline constexpr uint32_t kMaxDivisor = 10'000'000;
std::optional<RegexId> MultiplesOf(RegexStore& store, const Decimal& divisor);
// Adds other texts of the same numbers: a fraction of zeros, zeros at the end of fractions, and exponents where they
// can be had exactly: any exponent if only the sign is restricted, of integers one that is not negative, else negative
// ones after one digit and a fraction. The whole part and the fraction of a number that no keyword limits have at most
// kMaxFreeDigits digits each. Sets of integers have neither fractions nor exponents if `integers_have_no_fraction`.
inline constexpr uint32_t kMaxFreeDigits = 32;
RegexId AllSpellings(RegexStore& store, RegexId numbers, bool integers_have_no_fraction = false);

}  // namespace vllm
