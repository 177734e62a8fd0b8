#include "engine/structured_output/json_schema/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace vllm {
namespace {

// The most zeros that are added to a fraction.
constexpr uint32_t kMaxExtraZeros = 20;
// The most digits of an exponent, and the largest absolute value of the negative ones of numbers with bounds.
constexpr uint32_t kMaxExponentDigits = 3;
constexpr int kMaxSmallExponent = 99;

RegexId Digits(RegexStore& store, int first, int last) {
  if (first > last) return RegexStore::kNothing;
  return store.Bytes(ByteSet::Range(static_cast<uint8_t>('0' + first), static_cast<uint8_t>('0' + last)));
}

RegexId AnyDigits(RegexStore& store, uint32_t min, uint32_t max) { return store.Repeat(Digits(store, 0, 9), min, max); }

// The digits of a fraction, at least one, of which the last is not zero.
RegexId FractionDigits(RegexStore& store) {
  return store.Concat(AnyDigits(store, 0, RegexStore::kUnbounded), Digits(store, 1, 9));
}

RegexId OptionalFraction(RegexStore& store) {
  return store.Optional(store.Concat(store.Literal("."), FractionDigits(store)));
}

// Whole parts of at least one digit.
RegexId AnyWhole(RegexStore& store) {
  return store.Or({store.Literal("0"), store.Concat(Digits(store, 1, 9), AnyDigits(store, 0, RegexStore::kUnbounded))});
}

// The numbers of at least zero that are on one side of `bound`, which is not negative. `above`: greater; else smaller.
RegexId OneSide(RegexStore& store, const Decimal& bound, bool above, bool exclusive) {
  const RegexId equal = exclusive ? RegexStore::kNothing : RegexStore::kEmpty;
  // From the end: what may follow the first i digits of the bound.
  const auto differs = [&](char digit) {
    const int value = digit - '0';
    return above ? Digits(store, value + 1, 9) : Digits(store, 0, value - 1);
  };
  const RegexId more = FractionDigits(store);
  // After all digits of the bound's fraction, any others make the number greater.
  RegexId rest = above ? store.Or({equal, more}) : equal;
  for (size_t i = bound.fraction.size(); i-- > 0;) {
    const char digit = bound.fraction[i];
    std::vector<RegexId> ways = {store.Concat(store.Literal(std::string_view(&digit, 1)), rest)};
    // A digit that differs, and any others, of which the last is not zero.
    const RegexId other = differs(digit);
    ways.push_back(store.Concat(other, more));
    ways.push_back(store.And({other, Digits(store, 1, 9)}));
    // A fraction that ends here is smaller. It ends after a digit that is not zero.
    if (!above && i > 0 && bound.fraction[i - 1] != '0') ways.push_back(RegexStore::kEmpty);
    rest = store.Or(std::move(ways));
  }
  const RegexId point = store.Literal(".");
  if (bound.fraction.empty()) {
    // `rest` is what may follow the whole part if it has no point, or the fraction after the point.
    rest = above ? store.Or({equal, store.Concat(point, more)}) : equal;
  } else {
    rest = store.Concat(point, rest);
    if (!above) rest = store.Optional(rest);
  }
  const RegexId any_fraction = OptionalFraction(store);
  for (size_t i = bound.whole.size(); i-- > 0;) {
    const char digit = bound.whole[i];
    RegexId other = differs(digit);
    if (i == 0 && bound.whole.size() > 1) other = store.And({other, Digits(store, 1, 9)});
    const auto num_after = static_cast<uint32_t>(bound.whole.size() - 1 - i);
    const std::array<RegexId, 3> differing = {other, AnyDigits(store, num_after, num_after), any_fraction};
    rest = store.Or({store.Concat(store.Literal(std::string_view(&digit, 1)), rest), store.Concat(differing)});
  }
  // Whole parts with another number of digits.
  const auto size = static_cast<uint32_t>(bound.whole.size());
  std::vector<RegexId> ways = {rest};
  const auto with_digits = [&](uint32_t min, uint32_t max) {
    const std::array<RegexId, 3> parts = {Digits(store, 1, 9), AnyDigits(store, min - 1, max), any_fraction};
    ways.push_back(store.Concat(parts));
  };
  if (above) {
    with_digits(size + 1, RegexStore::kUnbounded);
  } else if (size > 1) {
    with_digits(1, size - 2);
    ways.push_back(store.Concat(store.Literal("0"), any_fraction));
  }
  return store.Or(std::move(ways));
}

RegexId NotNegative(RegexStore& store) { return store.Concat(AnyWhole(store), OptionalFraction(store)); }

RegexId Negative(RegexStore& store, RegexId magnitudes) {
  return store.Concat(store.Literal("-"), store.And({magnitudes, store.Not(store.Literal("0"))}));
}

// Limits the digits where the numbers have no limit: a model might write digits for ever. Numbers above a large bound
// need more digits.
RegexId Bounded(RegexStore& store, RegexId numbers) {
  for (uint32_t limit = kMaxFreeDigits; limit <= 2 * kMaxDigits; limit *= 2) {
    const RegexId bounded = store.WithBoundedRepetitions(numbers, limit - 1);
    if (!store.IsNothing(bounded)) return bounded;
  }
  return numbers;
}

RegexId Exponent(RegexStore& store, std::initializer_list<const char*> signs, RegexId digits) {
  std::vector<RegexId> ways;
  for (const char* sign : signs) ways.push_back(store.Literal(sign));
  const std::array<RegexId, 3> parts = {store.Or({store.Literal("e"), store.Literal("E")}), store.Or(std::move(ways)),
                                        digits};
  return store.Concat(parts);
}

// By their first digit: the digits with an equal rest, and the rest. Without a digit that no text begins with.
std::map<RegexId, ByteSet> Rests(RegexStore& store, RegexId texts, char first, char last) {
  std::map<RegexId, ByteSet> rests;
  for (char digit = first; digit <= last; ++digit) {
    const RegexId rest = store.Derivative(texts, static_cast<uint8_t>(digit));
    if (rest != RegexStore::kNothing) rests[rest].Add(static_cast<uint8_t>(digit));
  }
  return rests;
}

// Spellings with a negative exponent, such as 1.5e-07, of those of the numbers that are nearer to 0 than 0.1: one digit
// before the point, and no zeros at the end.
RegexId SmallNumbers(RegexStore& store, RegexId numbers) {
  std::vector<RegexId> ways;
  for (const char* sign : {"", "-"}) {
    RegexId rest = numbers;  // after the sign, the point, and the zeros that the exponent replaces
    for (const char* c = sign; *c != '\0'; ++c) rest = store.Derivative(rest, static_cast<uint8_t>(*c));
    rest = store.Derivative(store.Derivative(rest, '0'), '.');
    std::map<RegexId, std::vector<std::string>> exponents;  // by mantissa
    for (int exponent = 1; exponent <= kMaxSmallExponent && rest != RegexStore::kNothing; ++exponent) {
      std::vector<RegexId> mantissas;
      for (const auto& [after, digits] : Rests(store, rest, '1', '9')) {
        std::vector<RegexId> fractions;
        for (const auto& [end, more] : Rests(store, after, '0', '9')) {
          fractions.push_back(store.Concat(store.Bytes(more), end));
        }
        RegexId fraction = store.Concat(store.Literal("."), store.Or(std::move(fractions)));
        if (store.MatchesEmpty(after)) fraction = store.Optional(fraction);
        mantissas.push_back(store.Concat(store.Bytes(digits), fraction));
      }
      std::vector<std::string>& texts = exponents[store.Or(std::move(mantissas))];
      texts.push_back(std::to_string(exponent));
      if (exponent < 10) texts.push_back("0" + std::to_string(exponent));
      rest = store.Derivative(rest, '0');
    }
    for (auto& [mantissa, texts] : exponents) {
      const std::array<RegexId, 3> parts = {store.Literal(sign), mantissa,
                                            Exponent(store, {"-"}, store.Literals(std::move(texts)))};
      ways.push_back(store.Concat(parts));
    }
  }
  return store.Or(std::move(ways));
}

// Decimal texts, with any zeros at their ends, of the multiples of divisor / 10^num_decimals.
class MultipleAutomaton : public ByteAutomaton {
 public:
  MultipleAutomaton(uint32_t divisor, uint32_t num_decimals) : divisor_(divisor), num_decimals_(num_decimals) {
    powers_.push_back(1);
    for (uint32_t i = 0; i < num_decimals; ++i) powers_.push_back(powers_.back() * 10 % divisor);
  }

  int32_t Next(int32_t state, uint8_t byte) const override {
    const auto phase = static_cast<uint32_t>(state) / divisor_;
    const auto remainder = static_cast<uint32_t>(state) % divisor_;
    if (byte == '-') return phase == kStart ? State(kSign, 0) : -1;
    if (byte == '.') {
      if ((phase != kWhole && phase != kZero) || num_decimals_ == 0) return -1;
      return IsPossible(remainder, 0) ? State(kFraction, remainder) : -1;
    }
    if (byte < '0' || byte > '9' || phase == kZero) return -1;
    const auto digit = static_cast<uint32_t>(byte - '0');
    const auto next = static_cast<uint32_t>((uint64_t{remainder} * 10 + digit) % divisor_);
    if (phase < kWhole) return State(digit == 0 ? kZero : kWhole, next);
    if (phase == kWhole) return State(kWhole, next);
    const uint32_t num_digits = phase - kFraction + 1;
    if (num_digits > num_decimals_ || !IsPossible(next, num_digits)) return -1;
    return State(kFraction + num_digits, next);
  }

  bool IsFinal(int32_t state) const override {
    const auto phase = static_cast<uint32_t>(state) / divisor_;
    const auto remainder = static_cast<uint32_t>(state) % divisor_;
    if (phase <= kSign || phase == kFraction) return false;
    const uint32_t num_digits = phase > kFraction ? phase - kFraction : 0;
    return uint64_t{remainder} * powers_[num_decimals_ - num_digits] % divisor_ == 0;
  }

  // Exact, because a search without a guide would visit as many states as the divisor is large.
  uint32_t MinBytes(int32_t state) const override {
    const auto phase = static_cast<uint32_t>(state) / divisor_;
    const auto remainder = static_cast<uint32_t>(state) % divisor_;
    if (IsFinal(state)) return 0;
    if (phase <= kZero) return 1;  // "0"
    if (phase >= kFraction) {
      const uint32_t num_digits = phase - kFraction;
      const uint64_t value = remainder * powers_[num_decimals_ - num_digits];
      uint32_t num_more = 1;
      while (num_digits + num_more < num_decimals_ && !HasMultiple(value, num_digits + num_more, num_more)) ++num_more;
      return num_more;
    }
    const uint64_t whole = remainder * powers_[num_decimals_] % divisor_;
    for (uint32_t num_bytes = 1;; ++num_bytes) {
      uint64_t value = whole;  // with the digits that come before a point
      for (uint32_t num_whole = 0; num_whole + 2 <= num_bytes; ++num_whole, value = value * 10 % divisor_) {
        const uint32_t num_digits = num_bytes - num_whole - 1;  // after a point
        if (num_digits <= num_decimals_ && HasMultiple(value, num_digits, num_whole + num_digits)) return num_bytes;
      }
      if (HasMultiple(value * 10, 0, num_bytes)) return num_bytes;
    }
  }

  std::vector<ByteSet> ByteClasses() const override {
    std::vector<ByteSet> classes;
    for (const char c : std::string_view("-.0123456789")) {
      classes.push_back(ByteSet::Range(static_cast<uint8_t>(c), static_cast<uint8_t>(c)));
    }
    return classes;
  }

  // Whether the states fit into an int32.
  static bool Fits(uint32_t divisor, size_t num_decimals) {
    return uint64_t{divisor} * (num_decimals + 6) < uint64_t{1} << 31;
  }

 private:
  // kFraction + n: n digits after the point.
  enum : uint32_t { kStart, kSign, kZero, kWhole, kFraction };
  int32_t State(uint32_t phase, uint32_t remainder) const { return static_cast<int32_t>(phase * divisor_ + remainder); }

  // Whether the digits that may still follow the first `num_digits` of the fraction can make a multiple.
  bool IsPossible(uint32_t remainder, uint32_t num_digits) const {
    uint64_t value = remainder;
    uint64_t choices = 1;
    for (uint32_t i = num_digits; i < num_decimals_; ++i) {
      value = value * 10 % divisor_;
      choices = std::min<uint64_t>(choices * 10, divisor_);
    }
    return (divisor_ - value) % divisor_ < choices;
  }

  // Whether there is a multiple among value + x * step for the numbers x of num_free_digits digits, where a step
  // changes the last of `num_digits` digits after the point. In units of the last of num_decimals_ digits.
  bool HasMultiple(uint64_t value, uint32_t num_digits, uint32_t num_free_digits) const {
    const uint64_t step = powers_[num_decimals_ - num_digits] % divisor_;
    const uint64_t target = (divisor_ - value % divisor_) % divisor_;
    const uint64_t factor = std::gcd(step, uint64_t{divisor_});
    if (target % factor != 0) return false;
    const uint64_t period = divisor_ / factor;
    uint64_t num_choices = 1;
    for (uint32_t i = 0; i < num_free_digits && num_choices < period; ++i) num_choices *= 10;
    return target / factor * Inverse(step / factor % period, period) % period < num_choices;
  }

  // Returns the number whose product with `value` is 1 modulo `modulus`. REQUIRES: they have no common divisor.
  static uint64_t Inverse(uint64_t value, uint64_t modulus) {
    int64_t a = static_cast<int64_t>(value), b = static_cast<int64_t>(modulus);
    int64_t x = 1, y = 0;
    while (b != 0) {
      const int64_t quotient = a / b;
      a = std::exchange(b, a - quotient * b);
      x = std::exchange(y, x - quotient * y);
    }
    return static_cast<uint64_t>(x < 0 ? x + static_cast<int64_t>(modulus) : x);
  }

  uint32_t divisor_, num_decimals_;
  std::vector<uint64_t> powers_;  // of 10, modulo divisor_
};

}  // namespace

std::optional<Decimal> ParseDecimal(std::string_view text) {
  Decimal decimal;
  if (text.starts_with('-')) {
    decimal.negative = true;
    text.remove_prefix(1);
  }
  int64_t exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  auto num_whole = static_cast<int64_t>(digits.size());
  if (point != text.npos) digits += text.substr(point + 1);
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return Decimal();
  digits.erase(0, first);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (exponent > kMaxDigits || exponent < -kMaxDigits) return std::nullopt;
  num_whole += exponent - static_cast<int64_t>(first);
  const auto size = static_cast<int64_t>(digits.size());
  if (size > kMaxDigits || num_whole > kMaxDigits || num_whole < -kMaxDigits) return std::nullopt;
  if (num_whole <= 0) {
    decimal.fraction = std::string(static_cast<size_t>(-num_whole), '0') + digits;
  } else if (num_whole >= size) {
    decimal.whole = digits + std::string(static_cast<size_t>(num_whole - size), '0');
  } else {
    decimal.whole = digits.substr(0, static_cast<size_t>(num_whole));
    decimal.fraction = digits.substr(static_cast<size_t>(num_whole));
  }
  return decimal;
}

RegexId AnyNumber(RegexStore& store) {
  const RegexId magnitudes = NotNegative(store);
  return store.Or({magnitudes, Negative(store, magnitudes)});
}

RegexId AnyInteger(RegexStore& store) {
  const RegexId positive = store.Concat(Digits(store, 1, 9), AnyDigits(store, 0, RegexStore::kUnbounded));
  return store.Or({store.Literal("0"), store.Concat(store.Optional(store.Literal("-")), positive)});
}

RegexId NumbersFrom(RegexStore& store, const Decimal& bound, bool exclusive) {
  if (bound.is_zero() && !exclusive) return NotNegative(store);
  if (!bound.negative) return OneSide(store, bound, /*above=*/true, exclusive);
  Decimal magnitude = bound;
  magnitude.negative = false;
  return store.Or({NotNegative(store), Negative(store, OneSide(store, magnitude, /*above=*/false, exclusive))});
}

RegexId NumbersUpTo(RegexStore& store, const Decimal& bound, bool exclusive) {
  if (!bound.negative) {
    const RegexId magnitudes = OneSide(store, bound, /*above=*/false, exclusive);
    return store.Or({magnitudes, Negative(store, NotNegative(store))});
  }
  Decimal magnitude = bound;
  magnitude.negative = false;
  return Negative(store, OneSide(store, magnitude, /*above=*/true, exclusive));
}

std::optional<RegexId> MultiplesOf(RegexStore& store, const Decimal& divisor) {
  std::string digits = divisor.whole + divisor.fraction;
  digits.erase(0, digits.find_first_not_of('0'));
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value == 0 || value > kMaxDivisor ||
      !MultipleAutomaton::Fits(value, divisor.fraction.size())) {
    return std::nullopt;
  }
  const auto num_decimals = static_cast<uint32_t>(divisor.fraction.size());
  const RegexId multiples = store.Automaton(std::make_shared<const MultipleAutomaton>(value, num_decimals));
  // The multiples of an integer are integers. With AnyNumber, AllSpellings would look for one with a fraction among as
  // many states as the divisor is large.
  return store.And({multiples, num_decimals == 0 ? AnyInteger(store) : AnyNumber(store)});
}

RegexId AllSpellings(RegexStore& store, RegexId numbers, bool integers_have_no_fraction) {
  const RegexId minus = store.Optional(store.Literal("-"));
  const RegexId whole = Bounded(store, AnyWhole(store));
  const RegexId digits = AnyDigits(store, 1, kMaxFreeDigits);
  const RegexId fraction = store.Optional(store.Concat(store.Literal("."), digits));
  const auto with_exponent = [&](RegexId mantissa, std::initializer_list<const char*> signs) {
    return store.Concat(mantissa, store.Optional(Exponent(store, signs, AnyDigits(store, 1, kMaxExponentDigits))));
  };
  const auto sequence = [&](std::initializer_list<RegexId> parts) { return store.Concat(std::vector<RegexId>(parts)); };
  if (numbers == AnyNumber(store)) return with_exponent(sequence({minus, whole, fraction}), {"", "+", "-"});
  if (numbers == NotNegative(store)) return with_exponent(sequence({whole, fraction}), {"", "+", "-"});
  const RegexId zeros = store.Repeat(store.Literal("0"), 1, kMaxExtraZeros);
  const RegexId point_and_zeros = store.Concat(store.Literal("."), zeros);
  const RegexId integers = AnyInteger(store);
  if (numbers == integers) {
    if (integers_have_no_fraction) return Bounded(store, integers);
    return store.Or({store.Concat(sequence({minus, whole}), store.Optional(point_and_zeros)),
                     with_exponent(sequence({minus, whole}), {"", "+"})});
  }
  const RegexId bounded = Bounded(store, numbers);
  const RegexId fractions = store.And({bounded, store.Not(integers)});
  if (store.IsNothing(fractions)) {
    return integers_have_no_fraction ? bounded : store.Concat(bounded, store.Optional(point_and_zeros));
  }
  return store.Or({bounded, store.Concat(fractions, zeros),
                   store.Concat(store.And({bounded, integers}), point_and_zeros),
                   Bounded(store, SmallNumbers(store, numbers))});
}

}  // namespace vllm
