#include <algorithm>
#include <string>
#include <string_view>

#include "tokenizer/jinja/builtins/brace_format.h"
#include "tokenizer/jinja/builtins/methods.h"
#include "tokenizer/jinja/values/letter_case.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

Value Text(Runtime& runtime, const Value& self, std::string text) {
  return MakeString(&runtime.budget, std::move(text), self.is_markup());
}

template <std::string (*Convert)(std::string_view)>
Value Converted(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs none("string method", args, {});
  runtime.budget.SpendBytes(self.text().size() * 32);
  return Text(runtime, self, Convert(self.text()));
}

template <bool kLeft, bool kRight>
Value Strip(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(kLeft && kRight ? "strip" : kLeft ? "lstrip" : "rstrip", args, {"chars"});
  const std::string* chars = bound.NotNone(0) == nullptr ? nullptr : &bound.Text(0);
  if (chars != nullptr) runtime.budget.SpendBytes(self.text().size() * (8 + chars->size() / 8));
  std::string_view text = self.text();
  if (kLeft) text = chars == nullptr ? StripLeft(text) : StripLeft(text, *chars);
  if (kRight) text = chars == nullptr ? StripRight(text) : StripRight(text, *chars);
  runtime.budget.SpendBytes((self.text().size() - text.size()) * 16);
  return Text(runtime, self, std::string(text));
}

Value ListOf(Runtime& runtime, const Value& self, const std::vector<std::string_view>& parts) {
  runtime.budget.CheckMemory(parts.size() * (sizeof(Value) + sizeof(StringObject)));
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(Text(runtime, self, std::string(part)));
  return MakeSequence(&runtime.budget, Kind::kList, std::move(items));
}

template <bool kFromRight>
Value Split(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(kFromRight ? "rsplit" : "split", args, {"sep", "maxsplit"});
  const std::string* separator = bound.NotNone(0) == nullptr ? nullptr : &bound.Text(0);
  runtime.budget.SpendBytes(self.text().size() * 16);
  return ListOf(runtime, self, SplitText(runtime.budget, self.text(), separator, bound.Int(1, -1), kFromRight));
}

Value SplitLinesMethod(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("splitlines", args, {"keepends"});
  runtime.budget.SpendBytes(self.text().size() * 8);
  return ListOf(runtime, self, SplitLines(self.text(), bound.Bool(0, false)));
}

template <bool kFromRight>
Value Partition(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(kFromRight ? "rpartition" : "partition", args, {"sep"}, 1);
  const std::string& separator = bound.Text(0);
  if (separator.empty()) throw EvalError("empty separator");
  runtime.budget.SpendBytes(SearchCost(self.text(), separator) * (kFromRight ? 2 : 1));
  const std::string& text = self.text();
  const size_t found = kFromRight ? FindTextLast(text, separator) : FindText(text, separator);
  std::string before = found == text.npos ? (kFromRight ? "" : text) : text.substr(0, found);
  std::string after = found == text.npos ? (kFromRight ? text : "") : text.substr(found + separator.size());
  std::vector<Value> items;
  items.push_back(Text(runtime, self, std::move(before)));
  items.push_back(Text(runtime, self, found == text.npos ? "" : separator));
  items.push_back(Text(runtime, self, std::move(after)));
  return MakeSequence(&runtime.budget, Kind::kTuple, std::move(items));
}

Value Replace(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("replace", args, {"old", "new", "count"}, 2);
  return Text(runtime, self, ReplaceText(runtime.budget, self.text(), bound.Text(0), bound.Text(1), bound.Int(2, -1)));
}

// The part [start, stop) of a string that find, count, startswith, ... search. `first` is the index of the first code
// point of `text` in the string. `valid` is false if start > stop or start exceeds the length of the string.
struct Window {
  std::string_view text;
  int64_t first = 0;
  bool valid = true;
};
Window WindowOf(Runtime& runtime, const Value& self, const BoundArgs& bound) {
  runtime.budget.SpendBytes(self.text().size() * (self.is_ascii() ? 1 : 8));
  const int64_t length = *Length(self);
  const auto clamp = [&](int64_t index) { return std::max<int64_t>(index < 0 ? index + length : index, 0); };
  const int64_t start = bound.NotNone(1) == nullptr ? 0 : clamp(bound.Int(1, 0));
  const int64_t stop = std::min(bound.NotNone(2) == nullptr ? length : clamp(bound.Int(2, length)), length);
  if (start > length || start > stop) return {{}, 0, false};
  const auto offset = [&](int64_t index) {
    return self.is_ascii() ? static_cast<size_t>(index) : CodePointOffset(self.text(), static_cast<size_t>(index));
  };
  const size_t from = offset(start);
  return {std::string_view(self.text()).substr(from, offset(stop) - from), start, true};
}

template <bool kFromRight, bool kMustFind>
Value Find(Runtime& runtime, const Value& self, const Args& args) {
  static constexpr const char* kName = kFromRight ? (kMustFind ? "rindex" : "rfind") : (kMustFind ? "index" : "find");
  const BoundArgs bound(kName, args, {"sub", "start", "end"}, 1);
  const std::string& needle = bound.Text(0);
  const Window window = WindowOf(runtime, self, bound);
  runtime.budget.SpendBytes(SearchCost(window.text, needle) * (kFromRight ? 2 : 1));
  size_t found = std::string_view::npos;
  if (window.valid) found = kFromRight ? FindTextLast(window.text, needle) : FindText(window.text, needle);
  if (found == std::string_view::npos) {
    if (kMustFind) throw EvalError("substring not found");
    return Value::Int(-1);
  }
  const size_t skipped = self.is_ascii() ? found : NumCodePoints(window.text.substr(0, found));
  return Value::Int(window.first + static_cast<int64_t>(skipped));
}

Value Count(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("count", args, {"sub", "start", "end"}, 1);
  const std::string& needle = bound.Text(0);
  const Window window = WindowOf(runtime, self, bound);
  if (!window.valid) return Value::Int(0);
  runtime.budget.SpendBytes(SearchCost(window.text, needle));
  if (needle.empty()) return Value::Int(static_cast<int64_t>(NumCodePoints(window.text)) + 1);
  int64_t count = 0;
  for (size_t i = 0; (i = FindText(window.text, needle, i)) != std::string_view::npos; i += needle.size()) {
    runtime.budget.Spend(1);
    ++count;
  }
  return Value::Int(count);
}

template <bool kEnd>
Value HasAffix(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(kEnd ? "endswith" : "startswith", args, {kEnd ? "suffix" : "prefix", "start", "end"}, 1);
  const Window window = WindowOf(runtime, self, bound);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string())
      throw EvalError(std::string("startswith and endswith need strings, not ") + TypeName(affix.kind()));
    runtime.budget.Spend(1);
    return window.valid && (kEnd ? window.text.ends_with(affix.text()) : window.text.starts_with(affix.text()));
  };
  if (!bound[0]->is(Kind::kTuple)) return Value::Bool(matches(*bound[0]));
  const std::vector<Value>& all = bound[0]->items();
  return Value::Bool(std::any_of(all.begin(), all.end(), matches));
}

template <bool kEnd>
Value RemoveAffix(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound(kEnd ? "removesuffix" : "removeprefix", args, {kEnd ? "suffix" : "prefix"}, 1);
  std::string_view text = self.text();
  const std::string& affix = bound.Text(0);
  if (!affix.empty() && (kEnd ? text.ends_with(affix) : text.starts_with(affix))) {
    text = kEnd ? text.substr(0, text.size() - affix.size()) : text.substr(affix.size());
  }
  return Text(runtime, self, std::string(text));
}

Value Join(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("join", args, {"iterable"}, 1);
  std::string result;
  bool first = true;
  for (const Value& item : ToVector(runtime.budget, *bound[0])) {
    if (!item.is_string()) throw EvalError(std::string("join needs strings, not ") + TypeName(item.kind()));
    Budget::CheckText(result.size() + self.text().size() + item.text().size());
    runtime.budget.SpendBytes(self.text().size() + item.text().size());
    if (!first) result += self.text();
    first = false;
    result += item.text();
  }
  return Text(runtime, self, std::move(result));
}

// `kSide` is where the text goes: -1 left, 1 right, 0 centered.
template <int kSide>
Value Justify(Runtime& runtime, const Value& self, const Args& args) {
  static constexpr const char* kName = kSide < 0 ? "ljust" : kSide > 0 ? "rjust" : "center";
  const BoundArgs bound(kName, args, {"width", "fillchar"}, 1);
  const std::string fill = bound[1] == nullptr ? " " : bound.Text(1);
  if (NumCodePoints(fill) != 1) throw EvalError("the fill character must be exactly one character long");
  runtime.budget.SpendBytes(self.text().size() * 4);
  return Text(runtime, self, PadText(self.text(), bound.Int(0, 0), fill, kSide));
}

Value ZeroFill(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("zfill", args, {"width"}, 1);
  const std::string& text = self.text();
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const int64_t width = bound.Int(0, 0);
  runtime.budget.SpendBytes(text.size() * 4);
  return Text(runtime, self,
              text.substr(0, sign) + PadText(text.substr(sign), width - static_cast<int64_t>(sign), "0", 1));
}

Value ExpandTabs(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("expandtabs", args, {"tabsize"});
  const int64_t size = std::clamp<int64_t>(bound.Int(0, 8), 0, 1000);
  runtime.budget.SpendBytes(self.text().size() * 8);
  std::string result;
  int64_t column = 0;
  const std::string& text = self.text();
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = NextCodePoint(text, i);
    if (c == '\t') {
      const int64_t pad = size == 0 ? 0 : size - column % size;
      result.append(static_cast<size_t>(pad), ' ');
      column += pad;
    } else {
      result.append(text, start, i - start);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
    Budget::CheckText(result.size());
  }
  return Text(runtime, self, std::move(result));
}

bool IsAlnum(char32_t c) { return IsAlpha(c) || IsDigit(c); }

template <bool (*Predicate)(char32_t)>
Value AllCodePoints(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs none("string method", args, {});
  const std::string& text = self.text();
  runtime.budget.SpendBytes(text.size() * 8);
  for (size_t i = 0; i < text.size();) {
    if (!Predicate(NextCodePoint(text, i))) return Value::Bool(false);
  }
  return Value::Bool(!text.empty());
}

template <bool kUpper>
Value HasCase(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs none("string method", args, {});
  runtime.budget.SpendBytes(self.text().size() * 8);
  return Value::Bool(HasOnlyCase(self.text(), kUpper));
}

Value IsTitle(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs none("istitle", args, {});
  runtime.budget.SpendBytes(self.text().size() * 8);
  bool cased = false, after_cased = false;
  for (size_t i = 0; i < self.text().size();) {
    const char32_t c = NextCodePoint(self.text(), i);
    const bool upper = IsUpper(c);
    const bool lower = !upper && IsLower(c);
    if ((upper && after_cased) || (lower && !after_cased)) return Value::Bool(false);
    after_cased = upper || lower;
    cased = cased || after_cased;
  }
  return Value::Bool(cased);
}

Value IsAscii(Runtime&, const Value& self, const Args& args) {
  const BoundArgs none("isascii", args, {});
  return Value::Bool(self.is_ascii());
}

Value IsIdentifier(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs none("isidentifier", args, {});
  const std::string& text = self.text();
  runtime.budget.SpendBytes(text.size() * 16);
  for (size_t i = 0; i < text.size();) {
    const bool first = i == 0;
    const char32_t c = NextCodePoint(text, i);
    if (c != '_' && !IsAlpha(c) && (first || !IsDigit(c))) return Value::Bool(false);
  }
  return Value::Bool(!text.empty());
}

Value Format(Runtime& runtime, const Value& self, const Args& args) {
  return Text(runtime, self, BraceFormat(runtime, self.text(), args));
}

Value FormatMap(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("format_map", args, {"mapping"}, 1);
  if (!bound[0]->is(Kind::kDict)) throw EvalError("format_map needs a mapping");
  Args named;
  for (const auto& [key, value] : bound[0]->dict().items) {
    if (key.is_string()) named.keywords.emplace_back(key.text(), value);
  }
  return Text(runtime, self, BraceFormat(runtime, self.text(), named));
}

// Returns the largest code point that the encoding can represent. UTF-8 is the only supported encoding that uses more
// than one byte per character.
char32_t LargestCodePoint(const BoundArgs& bound) {
  if (bound[0] == nullptr) return 0x10FFFF;
  // Python ignores case and treats - and _ alike.
  std::string name = ToLower(bound.Text(0));
  std::replace(name.begin(), name.end(), '_', '-');
  if (name == "utf-8" || name == "utf8" || name == "u8") return 0x10FFFF;
  if (name == "ascii" || name == "us-ascii") return 0x7F;
  if (name == "latin-1" || name == "latin1" || name == "iso-8859-1" || name == "iso8859-1" || name == "l1") return 0xFF;
  throw EvalError("encoding is not supported (use utf-8, ascii or latin-1)");
}

std::string_view ErrorHandler(const BoundArgs& bound) {
  const std::string_view name = bound[1] == nullptr ? "strict" : std::string_view(bound.Text(1));
  if (name != "strict" && name != "ignore" && name != "replace") {
    throw EvalError("error handler is not supported (use strict, ignore or replace)");
  }
  return name;
}

Value DecodeBytes(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("decode", args, {"encoding", "errors"});
  const char32_t largest = LargestCodePoint(bound);
  const std::string_view errors = ErrorHandler(bound);
  const std::string& bytes = self.text();
  runtime.budget.SpendBytes(bytes.size() * 8);
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const size_t start = i;
    Utf8Step step{Utf8Step::Kind::kValid, static_cast<unsigned char>(bytes[i]), 1};
    if (largest > 0xFF) step = DecodeUtf8(bytes, i);
    i += step.length;
    if (step.kind == Utf8Step::Kind::kValid && step.code_point <= largest) {
      AppendCodePoint(step.code_point, text);
    } else if (errors == "strict") {
      throw EvalError("cannot decode the bytes: the byte at offset " + std::to_string(start) +
                      " is not valid in the encoding");
    } else if (errors == "replace") {
      AppendCodePoint(0xFFFD, text);
    }
  }
  return MakeString(&runtime.budget, std::move(text));
}

Value HexOfBytes(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs none("hex", args, {});
  static constexpr std::string_view kHex = "0123456789abcdef";
  Budget::CheckText(self.text().size() * 2);
  std::string text;
  for (const char c : self.text()) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return MakeString(&runtime.budget, std::move(text));
}

Value EncodeText(Runtime& runtime, const Value& self, const Args& args) {
  const BoundArgs bound("encode", args, {"encoding", "errors"});
  const char32_t largest = LargestCodePoint(bound);
  const std::string_view errors = ErrorHandler(bound);
  if (largest > 0xFF || self.is_ascii()) return MakeBytes(&runtime.budget, self.text());
  runtime.budget.SpendBytes(self.text().size() * 8);
  std::string bytes;
  for (size_t i = 0; i < self.text().size();) {
    const char32_t c = NextCodePoint(self.text(), i);
    if (c <= largest) {
      bytes += static_cast<char>(c);
    } else if (errors == "strict") {
      throw EvalError("cannot encode the text: it contains a character that the encoding lacks");
    } else if (errors == "replace") {
      bytes += '?';
    }
  }
  return MakeBytes(&runtime.budget, std::move(bytes));
}

struct NamedMethod {
  std::string_view name;
  StringMethod method;
};

constexpr NamedMethod kMethods[] = {
    {"strip", Strip<true, true>},
    {"lstrip", Strip<true, false>},
    {"rstrip", Strip<false, true>},
    {"split", Split<false>},
    {"startswith", HasAffix<false>},
    {"endswith", HasAffix<true>},
    {"replace", Replace},
    {"join", Join},
    {"upper", Converted<ToUpper>},
    {"lower", Converted<ToLower>},
    {"casefold", Converted<CaseFold>},
    {"title", Converted<TitleCase>},
    {"capitalize", Converted<Capitalize>},
    {"swapcase", Converted<SwapCase>},
    {"rsplit", Split<true>},
    {"splitlines", SplitLinesMethod},
    {"partition", Partition<false>},
    {"rpartition", Partition<true>},
    {"find", Find<false, false>},
    {"rfind", Find<true, false>},
    {"index", Find<false, true>},
    {"rindex", Find<true, true>},
    {"count", Count},
    {"removeprefix", RemoveAffix<false>},
    {"removesuffix", RemoveAffix<true>},
    {"ljust", Justify<-1>},
    {"rjust", Justify<1>},
    {"center", Justify<0>},
    {"zfill", ZeroFill},
    {"expandtabs", ExpandTabs},
    {"isalpha", AllCodePoints<IsAlpha>},
    {"isdigit", AllCodePoints<IsDigit>},
    {"isdecimal", AllCodePoints<IsDigit>},
    {"isnumeric", AllCodePoints<IsDigit>},
    {"isalnum", AllCodePoints<IsAlnum>},
    {"isspace", AllCodePoints<IsSpace>},
    {"isupper", HasCase<true>},
    {"islower", HasCase<false>},
    {"istitle", IsTitle},
    {"isascii", IsAscii},
    {"isidentifier", IsIdentifier},
    {"encode", EncodeText},
    {"format", Format},
    {"format_map", FormatMap},
};

}  // namespace

StringMethod FindStringMethod(std::string_view name) {
  for (const NamedMethod& entry : kMethods) {
    if (entry.name == name) return entry.method;
  }
  return nullptr;
}

bool IsBytesMethod(std::string_view name) { return name == "decode" || name == "hex"; }

Value CallBytesMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args) {
  return name == "decode" ? DecodeBytes(runtime, self, args) : HexOfBytes(runtime, self, args);
}

}  // namespace vllm::tokenizer::jinja
