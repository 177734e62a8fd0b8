#include <cctype>

#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/builtins/html_entities.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"

namespace vllm::jinja {
namespace {

// urllib's quote; in a query / is quoted too, and a space is written +.
void AppendUrlQuoted(Runtime& runtime, const Value& value, bool in_query, std::string& out) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  const std::string text = value.is(Kind::kBytes) ? value.text() : Str(runtime.budget, value);
  Budget::CheckText(out.size() + text.size() * 3);
  runtime.budget.SpendBytes(text.size() * 8);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !in_query);
    if (plain && byte < 0x80) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
}

Value UrlEncode(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("urlencode", args, {});
  std::string result;
  if (input.is_string() || !IsIterable(input)) {
    AppendUrlQuoted(runtime, input, false, result);
    return MakeString(&runtime.budget, std::move(result));
  }
  const auto add = [&](const Value& key, const Value& value) {
    if (!result.empty()) result += '&';
    AppendUrlQuoted(runtime, key, true, result);
    result += '=';
    AppendUrlQuoted(runtime, value, true, result);
  };
  if (input.is(Kind::kDict)) {
    for (const auto& [key, value] : input.dict().items) add(key, value);
  } else {
    for (const Value& item : ToVector(runtime.budget, input)) {
      const std::vector<Value> pair = ToVector(runtime.budget, item);
      if (pair.size() != 2) throw EvalError("urlencode needs pairs, not " + std::to_string(pair.size()) + " values");
      add(pair[0], pair[1]);
    }
  }
  return MakeString(&runtime.budget, std::move(result));
}

// Without <...> and <!--...-->; what is not closed stays.
std::string WithoutTags(std::string_view text) {
  std::string out;
  size_t position = 0;
  while (true) {
    const size_t start = text.find('<', position);
    if (start == text.npos) break;
    const bool is_comment = text.substr(start).starts_with("<!--");
    const size_t end = is_comment ? text.find("-->", start + 4) : text.find('>', start);
    if (end == text.npos) break;
    out += text.substr(position, start - position);
    position = end + (is_comment ? 3 : 1);
  }
  out += text.substr(position);
  return out;
}

Value StripTags(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs none("striptags", args, {});
  const std::string text = Str(runtime.budget, input);
  runtime.budget.SpendBytes(text.size() * 16);
  const std::string untagged = WithoutTags(text);
  std::string collapsed;
  for (const std::string_view word : SplitText(runtime.budget, untagged, nullptr, -1, false)) {
    if (!collapsed.empty()) collapsed += ' ';
    collapsed += word;
  }
  return MakeString(&runtime.budget, UnescapeHtml(collapsed));
}

std::string Escaped(Runtime& runtime, const Value& value) {
  const std::string text = Str(runtime.budget, value);
  runtime.budget.SpendBytes(text.size() * 16);
  return value.is_markup() ? text : EscapeHtml(text);
}

Value XmlAttr(Runtime& runtime, const Value& input, const Args& args) {
  const BoundArgs bound("xmlattr", args, {"autospace"});
  if (!input.is(Kind::kDict)) {
    throw EvalError(input.is_undefined() ? input.UndefinedMessage()
                                         : std::string("xmlattr needs a mapping, not ") + TypeName(input.kind()));
  }
  std::string result;
  for (const auto& [key, value] : input.dict().items) {
    if (value.is(Kind::kNone) || value.is_undefined()) continue;
    if (!key.is_string()) throw EvalError(std::string("xmlattr needs names, not ") + TypeName(key.kind()));
    if (key.text().find_first_of(" \t\n\r\f\v/>=") != std::string::npos) {
      throw EvalError("xmlattr: invalid character in attribute name");
    }
    if (!result.empty()) result += ' ';
    result += Escaped(runtime, key) + "=\"" + Escaped(runtime, value) + '"';
    Budget::CheckText(result.size());
  }
  if (bound.Bool(0, true) && !result.empty()) result.insert(0, 1, ' ');
  return MakeString(&runtime.budget, std::move(result));
}

constexpr NamedFilter kFilters[] = {
    {"urlencode", UrlEncode},
    {"striptags", StripTags},
    {"xmlattr", XmlAttr},
};

}  // namespace

Filter FindMarkupFilter(std::string_view name) {
  for (const NamedFilter& entry : kFilters) {
    if (entry.name == name) return entry.filter;
  }
  return nullptr;
}

}  // namespace vllm::jinja
