#include "tokenizer/jinja/values/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

// Inserts separators into the integer part of `digits`, which begins at `begin`. If the number is to be padded with
// zeros, adds them first, because they get separators too: '{:08,}'.format(1234) is 0,001,234.
void GroupDigits(const FormatSpec& spec, size_t begin, std::string& digits) {
  const bool is_hex = spec.type == 'x' || spec.type == 'X';
  const size_t group = is_hex || spec.type == 'o' || spec.type == 'b' ? 4 : 3;
  size_t end = begin;
  const auto is_digit = [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return is_hex ? std::isxdigit(byte) != 0 : IsDigit(byte);
  };
  while (end < digits.size() && is_digit(digits[end])) ++end;
  if (end == begin) return;
  if (spec.fill == "0" && spec.align == '=') {
    const auto width = static_cast<size_t>(std::max<int64_t>(spec.width, 0));
    const auto grouped_size = [&](size_t zeros) { return digits.size() + zeros + (end - begin + zeros - 1) / group; };
    size_t zeros = 0;
    while (grouped_size(zeros) < width) ++zeros;
    digits.insert(begin, zeros, '0');
    end += zeros;
  }
  for (size_t position = end; position > begin + group;) {
    position -= group;
    digits.insert(position, 1, spec.grouping);
  }
}

}  // namespace

std::string FormatReal(double value, const FormatSpec& spec) {
  const char type = spec.type == '%' ? 'f' : spec.type == 'F' ? 'f' : spec.type;
  const double shown = std::fabs(spec.type == '%' ? value * 100 : value);
  std::string digits;
  if (!std::isfinite(value)) {
    digits = std::isnan(value) ? "nan" : "inf";
    if (std::isupper(static_cast<unsigned char>(spec.type)) != 0) digits = ToUpper(digits);
  } else {
    // A double has at most 309 digits before the decimal point, and at most kMaxPrecision + 3 digits are printed after
    // it ("%#.400g" of 0.0001).
    char buffer[800];
    const char format[] = {'%', '#', '.', '*', type, '\0'};
    const char plain[] = {'%', '.', '*', type, '\0'};
    const auto precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
    std::snprintf(buffer, sizeof buffer, spec.alternate ? format : plain, precision, shown);
    digits = buffer;
  }
  if (spec.type == '%') digits += '%';
  const bool negative = std::signbit(value) && !std::isnan(value);
  if (negative) return std::string(1, '-').append(digits);
  return spec.sign == '-' ? digits : std::string(1, spec.sign).append(digits);
}

std::string FormatInteger(int64_t value, const FormatSpec& spec) {
  uint64_t magnitude = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  const char kind = static_cast<char>(spec.type | 0x20);
  const unsigned base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  const std::string_view alphabet = spec.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
  std::string digits;
  do {
    digits += alphabet[magnitude % base];
    magnitude /= base;
  } while (magnitude != 0);
  std::reverse(digits.begin(), digits.end());
  const int64_t zeros = std::min<int64_t>(spec.precision, kMaxPrecision) - static_cast<int64_t>(digits.size());
  if (zeros > 0) digits = std::string(static_cast<size_t>(zeros), '0').append(digits);
  if (spec.alternate && base != 10) digits = std::string{'0', spec.type}.append(digits);
  if (value < 0) return std::string(1, '-').append(digits);
  return spec.sign == '-' ? digits : std::string(1, spec.sign).append(digits);
}

std::string PadNumber(std::string digits, const FormatSpec& spec) {
  const size_t sign = !digits.empty() && (digits[0] == '-' || digits[0] == '+' || digits[0] == ' ') ? 1 : 0;
  const size_t prefix = spec.alternate && digits.size() > sign + 1 && digits[sign] == '0' &&
                                std::isalpha(static_cast<unsigned char>(digits[sign + 1])) != 0
                            ? sign + 2
                            : sign;
  if (spec.grouping != '\0') GroupDigits(spec, prefix, digits);
  if (spec.align == '^') {  // unlike str.center, always puts an odd fill character on the right
    const auto length = static_cast<int64_t>(NumCodePoints(digits));
    const int64_t left = std::max<int64_t>(spec.width - length, 0) / 2;
    return PadText(PadText(digits, length + left, spec.fill, 1), spec.width, spec.fill, -1);
  }
  if (spec.align != '=') return PadText(digits, spec.width, spec.fill, spec.align == '<' ? -1 : 1);
  return digits.substr(0, prefix) +
         PadText(digits.substr(prefix), spec.width - static_cast<int64_t>(prefix), spec.fill, 1);
}

namespace {

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, std::string_view format, const Value& values)
      : budget_(budget), format_(format), values_(values) {}

  std::string Run() {
    budget_.SpendBytes(format_.size());
    while (position_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', position_), format_.size());
      result_ += format_.substr(position_, percent - position_);
      position_ = percent + 1;
      if (percent < format_.size()) Conversion();
      Budget::CheckText(result_.size());
    }
    const bool all_used = values_.is(Kind::kTuple) ? next_ >= values_.items().size() : next_ > 0;
    const bool needs_all = !values_.is(Kind::kDict) && !values_.is(Kind::kList) && !values_.is_undefined();
    if (!all_used && needs_all && !by_name_) throw EvalError("not all arguments converted during string formatting");
    return std::move(result_);
  }

 private:
  char Peek() const {
    if (position_ >= format_.size()) throw EvalError("incomplete format");
    return format_[position_];
  }

  const Value& NextValue() {
    if (values_.is(Kind::kTuple)) {
      if (next_ < values_.items().size()) return values_.items()[next_++];
    } else if (next_++ == 0) {
      return values_;
    }
    throw EvalError("not enough arguments for format string");
  }

  // Reads a number, or "*", which stands for the next value. Returns 0 if there is neither.
  int64_t Number() {
    if (Peek() == '*') {
      ++position_;
      const Value& value = NextValue();
      if (!value.is_integer()) throw EvalError("* wants an integer");
      return value.integer();
    }
    int64_t number = 0;
    while (IsDigit(static_cast<unsigned char>(Peek()))) {
      number = number * 10 + (format_[position_++] - '0');
      if (number > static_cast<int64_t>(Budget::kMaxTextBytes)) Budget::CheckText(Budget::kMaxTextBytes + 1);
    }
    return number;
  }

  void Conversion() {
    if (Peek() == '%') {
      result_ += '%';
      ++position_;
      return;
    }
    FormatSpec spec;
    const Value* value = nullptr;
    if (Peek() == '(') {
      const size_t end = format_.find(')', position_);
      if (end == format_.npos) throw EvalError("incomplete format key");
      if (!values_.is(Kind::kDict)) throw EvalError("format requires a mapping");
      value = values_.dict().Find(format_.substr(position_ + 1, end - position_ - 1));
      if (value == nullptr) throw EvalError("format key is not in the mapping");
      by_name_ = true;
      position_ = end + 1;
    }
    bool left = false, zero = false;
    for (;; ++position_) {
      const char flag = Peek();
      if (flag == '-') {
        left = true;
      } else if (flag == '0') {
        zero = true;
      } else if (flag == '+' || (flag == ' ' && spec.sign == '-')) {
        spec.sign = flag;
      } else if (flag == '#') {
        spec.alternate = true;
      } else if (flag != ' ') {
        break;
      }
    }
    spec.width = Number();
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (Peek() == '.') {
      ++position_;
      spec.precision = std::max<int64_t>(Number(), 0);
    }
    while (Peek() == 'l' || Peek() == 'h' || Peek() == 'L') ++position_;
    spec.type = format_[position_++];
    if (spec.type == '%') {
      result_ += '%';
      return;
    }
    spec.align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) spec.fill = std::string(1, '0');
    result_ += Convert(spec, value != nullptr ? *value : NextValue());
  }

  std::string Convert(FormatSpec& spec, const Value& value) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        std::string text = spec.type == 's' ? Str(budget_, value) : Repr(budget_, value);
        budget_.SpendBytes(text.size() * 8);
        if (spec.precision >= 0) text.resize(CodePointOffset(text, static_cast<size_t>(spec.precision)));
        return PadText(text, spec.width, " ", spec.align == '<' ? -1 : 1);
      }
      case 'c': {
        std::string text;
        if (value.is_string() && NumCodePoints(value.text()) == 1) {
          text = value.text();
        } else if (value.is_integer() && value.integer() >= 0 && value.integer() <= 0x10ffff) {
          AppendCodePoint(static_cast<char32_t>(value.integer()), text);
        } else {
          throw EvalError("%c needs a character or an integer from 0 to 0x10ffff");
        }
        return PadText(text, spec.width, " ", spec.align == '<' ? -1 : 1);
      }
      case 'd':
      case 'i':
      case 'u':
        spec.type = 'd';
        if (value.is(Kind::kFloat)) {
          if (!(std::fabs(value.real()) < 9.2e18)) throw EvalError("float does not fit in a 64-bit integer");
          return PadNumber(FormatInteger(static_cast<int64_t>(value.real()), spec), spec);
        }
        [[fallthrough]];
      case 'x':
      case 'X':
      case 'o':
        if (!value.is_integer()) FailNumber(value);
        return PadNumber(FormatInteger(value.integer(), spec), spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number()) FailNumber(value);
        // printf computes the digits one at a time, so the cost grows with the precision.
        budget_.Spend(32 + static_cast<size_t>(std::clamp<int64_t>(spec.precision, 0, kMaxPrecision)));
        if (spec.precision > kMaxPrecision) throw EvalError("precision is too large (limit 400)");
        return PadNumber(FormatReal(value.real(), spec), spec);
      default:
        throw EvalError("unsupported format character");
    }
  }

  [[noreturn]] static void FailNumber(const Value& value) {
    if (value.is_undefined()) throw EvalError(value.UndefinedMessage());
    throw EvalError(std::string("format character does not take a value of type ") + TypeName(value.kind()));
  }

  Budget& budget_;
  std::string_view format_;
  const Value& values_;
  size_t position_ = 0;
  size_t next_ = 0;
  bool by_name_ = false;
  std::string result_;
};

}  // namespace

std::string PercentFormat(Budget& budget, std::string_view format, const Value& values) {
  return PercentFormatter(budget, format, values).Run();
}

}  // namespace vllm::tokenizer::jinja
