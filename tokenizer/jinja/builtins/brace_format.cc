#include "tokenizer/jinja/builtins/brace_format.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tokenizer/jinja/builtins/subscript.h"
#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

bool IsAlign(char c) { return c == '<' || c == '>' || c == '^' || c == '='; }

int64_t ReadNumber(std::string_view spec, size_t& position) {
  int64_t number = 0;
  while (position < spec.size() && IsDigit(static_cast<unsigned char>(spec[position]))) {
    number = number * 10 + (spec[position++] - '0');
    if (number > static_cast<int64_t>(Budget::kMaxTextBytes)) Budget::CheckText(Budget::kMaxTextBytes + 1);
  }
  return number;
}

FormatSpec ParseSpec(std::string_view text) {
  FormatSpec spec;
  size_t position = 0;
  if (!text.empty()) {
    size_t after_fill = 0;
    NextCodePoint(text, after_fill);
    if (after_fill < text.size() && IsAlign(text[after_fill])) {
      spec.fill = text.substr(0, after_fill);
      spec.align = text[after_fill];
      position = after_fill + 1;
    } else if (IsAlign(text[0])) {
      spec.align = text[0];
      position = 1;
    }
  }
  const auto next_is = [&](char c) { return position < text.size() && text[position] == c; };
  if (next_is('+') || next_is('-') || next_is(' ')) spec.sign = text[position++];
  if (next_is('#')) {
    spec.alternate = true;
    ++position;
  }
  if (next_is('0')) {
    if (spec.align == '\0') {
      spec.fill = std::string(1, '0');
      spec.align = '=';
    }
    ++position;
  }
  spec.width = ReadNumber(text, position);
  if (next_is(',') || next_is('_')) spec.grouping = text[position++];
  if (next_is('.')) {
    ++position;
    const size_t digits = position;
    spec.precision = ReadNumber(text, position);
    if (position == digits) throw EvalError("format specifier is missing the precision");
  }
  if (position < text.size()) spec.type = text[position++];
  if (position != text.size()) throw EvalError("invalid format specifier");
  return spec;
}

std::string FormatValue(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return Str(budget, value);
  if (value.is_undefined()) throw EvalError(value.UndefinedMessage());
  FormatSpec spec = ParseSpec(text);
  const bool real_type = spec.type != '\0' && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
  if (value.is(Kind::kFloat) || (value.is_integer() && real_type)) {
    if (spec.precision > kMaxPrecision) throw EvalError("precision is too large (limit 400)");
    budget.Spend(32 + static_cast<size_t>(std::max<int64_t>(spec.precision, 0)));
    std::string digits;
    if (real_type) {
      digits = FormatReal(value.real(), spec);
    } else if (spec.type == '\0' && spec.precision < 0) {
      digits = FloatRepr(value.real());
      if (digits[0] != '-' && spec.sign != '-') digits = std::string(1, spec.sign).append(digits);
    } else if (spec.type == '\0' || spec.type == 'n') {
      spec.type = 'g';
      digits = FormatReal(value.real(), spec);
    } else {
      throw EvalError("unknown or unsupported format code for float");
    }
    return PadNumber(std::move(digits), spec);
  }
  if (value.is_integer()) {
    if (spec.type == '\0' || spec.type == 'n') spec.type = 'd';
    if (spec.type == 'c') {
      std::string result;
      if (!(value.integer() >= 0 && value.integer() <= 0x10ffff)) throw EvalError("code point is out of range");
      AppendCodePoint(static_cast<char32_t>(value.integer()), result);
      return PadNumber(std::move(result), spec);
    }
    if (std::string_view("dxXob").find(spec.type) == std::string_view::npos || spec.precision >= 0) {
      throw EvalError("format specifier is not valid for int");
    }
    if (spec.grouping == ',' && spec.type != 'd') throw EvalError("cannot specify ',' with this format code");
    return PadNumber(FormatInteger(value.integer(), spec), spec);
  }
  if (!value.is_string()) throw EvalError("format specifier is not valid for this type");
  if ((spec.type != '\0' && spec.type != 's') || spec.align == '=' || spec.sign != '-') {
    throw EvalError("format specifier is not valid for str");
  }
  std::string result = Str(budget, value);
  if (spec.precision >= 0) result.resize(CodePointOffset(result, static_cast<size_t>(spec.precision)));
  const int64_t length = static_cast<int64_t>(NumCodePoints(result));
  if (spec.align == '^') {  // unlike str.center, always puts an odd fill character on the right
    const int64_t pad = std::max<int64_t>(spec.width - length, 0);
    return PadText(PadText(result, length + pad / 2, spec.fill, 1), spec.width, spec.fill, -1);
  }
  return PadText(result, spec.width, spec.fill, spec.align == '>' ? 1 : -1);
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Args& args) : runtime_(runtime), args_(args) {}

  // `depth` is 1 for the format string and 2 for a format specifier. Fields in a specifier cannot have specifiers.
  std::string Run(std::string_view format, int depth) {
    if (depth > 2) throw EvalError("format fields are nested too deeply");
    runtime_.budget.SpendBytes(format.size());
    std::string result;
    for (size_t i = 0; i < format.size(); ++i) {
      const char c = format[i];
      if (c != '{' && c != '}') {
        result += c;
        continue;
      }
      if (i + 1 < format.size() && format[i + 1] == c) {
        result += c;
        ++i;
        continue;
      }
      if (c == '}') throw EvalError("single '}' encountered in format string");
      const size_t end = FieldEnd(format, i + 1);
      result += Field(format.substr(i + 1, end - i - 1), depth);
      Budget::CheckText(result.size());
      i = end;
    }
    return result;
  }

 private:
  static size_t FieldEnd(std::string_view format, size_t start) {
    int open = 1;
    for (size_t i = start; i < format.size(); ++i) {
      if (format[i] == '{') ++open;
      if (format[i] == '}' && --open == 0) return i;
    }
    throw EvalError("expected '}' before end of format string");
  }

  std::string Field(std::string_view field, int depth) {
    size_t name_end = 0;
    while (name_end < field.size() && field[name_end] != '!' && field[name_end] != ':') {
      if (field[name_end] == '[') name_end = std::min(field.find(']', name_end), field.size() - 1);
      ++name_end;
    }
    Value value = Lookup(field.substr(0, name_end));
    std::string_view rest = field.substr(name_end);
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        throw EvalError("invalid conversion in format string");
      if (rest[1] != 's' && rest[1] != 'r') throw EvalError("unknown conversion in format string (known: !s, !r)");
      value = MakeString(&runtime_.budget, rest[1] == 's' ? Str(runtime_.budget, value) : Repr(runtime_.budget, value));
      rest = rest.substr(2);
    }
    const std::string spec = rest.empty() ? "" : Run(rest.substr(1), depth + 1);
    return FormatValue(runtime_.budget, value, spec);
  }

  Value Lookup(std::string_view name) {
    const size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = First(name.substr(0, first_end));
    for (size_t i = first_end; i < name.size();) {
      if (name[i] == '[') {
        const size_t end = name.find(']', i);
        if (end == name.npos || end == i + 1) throw EvalError("missing ']' or empty index in format string");
        value = GetItem(runtime_, value, Key(name.substr(i + 1, end - i - 1)));
        i = end + 1;
      } else {
        const size_t end = std::min(name.find_first_of(".[", i + 1), name.size());
        if (end == i + 1) throw EvalError("empty attribute in format string");
        const std::string_view attribute = name.substr(i + 1, end - i - 1);
        value = attribute.starts_with("__")
                    ? Value::Undefined()
                    : GetItem(runtime_, value, MakeString(&runtime_.budget, std::string(attribute)));
        i = end;
      }
    }
    return value;
  }

  Value Key(std::string_view text) {
    int64_t index = 0;
    const bool digits = std::all_of(text.begin(), text.end(), [](unsigned char c) { return IsDigit(c); });
    if (digits && ParseInteger(text, 10, index)) return Value::Int(index);
    return MakeString(&runtime_.budget, std::string(text));
  }

  const Value& First(std::string_view name) {
    size_t index = 0;
    const bool digits = std::all_of(name.begin(), name.end(), [](unsigned char c) { return IsDigit(c); });
    if (!digits) {
      if (const Value* found = args_.Keyword(name)) return *found;
      throw EvalError("format field has no value");
    }
    if (name.size() > 9) throw EvalError("format field has no value");
    if (manual_ && *manual_ == name.empty()) throw EvalError("cannot mix numbered and automatic format fields");
    manual_ = !name.empty();
    for (const char c : name) index = index * 10 + static_cast<size_t>(c - '0');
    if (name.empty()) index = next_++;
    if (index >= args_.positional.size()) throw EvalError("format field has no value");
    return args_.positional[index];
  }

  Runtime& runtime_;
  const Args& args_;
  size_t next_ = 0;
  std::optional<bool> manual_;
};

}  // namespace

std::string BraceFormat(Runtime& runtime, std::string_view format, const Args& args) {
  return BraceFormatter(runtime, args).Run(format, 1);
}

}  // namespace vllm::tokenizer::jinja
