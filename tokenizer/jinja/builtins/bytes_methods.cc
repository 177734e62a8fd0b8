#include <algorithm>
#include <string>
#include <string_view>

#include "tokenizer/jinja/builtins/methods.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::jinja {
namespace {

// The largest code point of an encoding that writes one byte for each; UTF-8 is 0x10FFFF.
char32_t LargestCodePoint(const BoundArgs& bound) {
  if (bound[0] == nullptr) return 0x10FFFF;
  // Python takes - and _ for the same, and any case.
  std::string name = ToLower(bound.Text(0));
  std::replace(name.begin(), name.end(), '_', '-');
  if (name == "utf-8" || name == "utf8" || name == "u8") return 0x10FFFF;
  if (name == "ascii" || name == "us-ascii") return 0x7F;
  if (name == "latin-1" || name == "latin1" || name == "iso-8859-1" || name == "iso8859-1" || name == "l1") return 0xFF;
  throw EvalError("encoding is not supported (known are utf-8, ascii and latin-1)");
}

std::string_view ErrorHandler(const BoundArgs& bound) {
  const std::string_view name = bound[1] == nullptr ? "strict" : std::string_view(bound.Text(1));
  if (name != "strict" && name != "ignore" && name != "replace") {
    throw EvalError("errors is not supported (known are strict, ignore and replace)");
  }
  return name;
}

Value Decode(Runtime& runtime, const Value& self, const Args& args) {
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
      AppendCodePoint(text, step.code_point);
    } else if (errors == "strict") {
      throw EvalError("cannot decode the bytes: position " + std::to_string(start) + " is not of the encoding");
    } else if (errors == "replace") {
      AppendCodePoint(text, 0xFFFD);
    }
  }
  return MakeString(&runtime.budget, std::move(text));
}

Value Hex(Runtime& runtime, const Value& self, const Args& args) {
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

}  // namespace

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
      throw EvalError("cannot encode the text: it has a character that is not of the encoding");
    } else if (errors == "replace") {
      bytes += '?';
    }
  }
  return MakeBytes(&runtime.budget, std::move(bytes));
}

bool IsBytesMethod(std::string_view name) { return name == "decode" || name == "hex"; }

Value CallBytesMethod(Runtime& runtime, const Value& self, std::string_view name, const Args& args) {
  return name == "decode" ? Decode(runtime, self, args) : Hex(runtime, self, args);
}

}  // namespace vllm::jinja
