#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>

#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"
#include "tokenizer/jinja/values/string_operations.h"
#include "tokenizer/jinja/values/text.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer::jinja {
namespace {

// urllib.parse.quote. In a query, also quotes / and writes a space as +.
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

struct Entity {
  std::string_view name;
  char16_t code_point;
  bool has_optional_semicolon;
};

// The named character references of HTML 4 and seven others (AMP, COPY, GT, LT, QUOT, REG, apos), sorted by name. The
// values are those of HTML 5.
constexpr Entity kEntities[] = {
    {"AElig", 198, true},     {"AMP", 38, true},       {"Aacute", 193, true},    {"Acirc", 194, true},
    {"Agrave", 192, true},    {"Alpha", 913, false},   {"Aring", 197, true},     {"Atilde", 195, true},
    {"Auml", 196, true},      {"Beta", 914, false},    {"COPY", 169, true},      {"Ccedil", 199, true},
    {"Chi", 935, false},      {"Dagger", 8225, false}, {"Delta", 916, false},    {"ETH", 208, true},
    {"Eacute", 201, true},    {"Ecirc", 202, true},    {"Egrave", 200, true},    {"Epsilon", 917, false},
    {"Eta", 919, false},      {"Euml", 203, true},     {"GT", 62, true},         {"Gamma", 915, false},
    {"Iacute", 205, true},    {"Icirc", 206, true},    {"Igrave", 204, true},    {"Iota", 921, false},
    {"Iuml", 207, true},      {"Kappa", 922, false},   {"LT", 60, true},         {"Lambda", 923, false},
    {"Mu", 924, false},       {"Ntilde", 209, true},   {"Nu", 925, false},       {"OElig", 338, false},
    {"Oacute", 211, true},    {"Ocirc", 212, true},    {"Ograve", 210, true},    {"Omega", 937, false},
    {"Omicron", 927, false},  {"Oslash", 216, true},   {"Otilde", 213, true},    {"Ouml", 214, true},
    {"Phi", 934, false},      {"Pi", 928, false},      {"Prime", 8243, false},   {"Psi", 936, false},
    {"QUOT", 34, true},       {"REG", 174, true},      {"Rho", 929, false},      {"Scaron", 352, false},
    {"Sigma", 931, false},    {"THORN", 222, true},    {"Tau", 932, false},      {"Theta", 920, false},
    {"Uacute", 218, true},    {"Ucirc", 219, true},    {"Ugrave", 217, true},    {"Upsilon", 933, false},
    {"Uuml", 220, true},      {"Xi", 926, false},      {"Yacute", 221, true},    {"Yuml", 376, false},
    {"Zeta", 918, false},     {"aacute", 225, true},   {"acirc", 226, true},     {"acute", 180, true},
    {"aelig", 230, true},     {"agrave", 224, true},   {"alefsym", 8501, false}, {"alpha", 945, false},
    {"amp", 38, true},        {"and", 8743, false},    {"ang", 8736, false},     {"apos", 39, false},
    {"aring", 229, true},     {"asymp", 8776, false},  {"atilde", 227, true},    {"auml", 228, true},
    {"bdquo", 8222, false},   {"beta", 946, false},    {"brvbar", 166, true},    {"bull", 8226, false},
    {"cap", 8745, false},     {"ccedil", 231, true},   {"cedil", 184, true},     {"cent", 162, true},
    {"chi", 967, false},      {"circ", 710, false},    {"clubs", 9827, false},   {"cong", 8773, false},
    {"copy", 169, true},      {"crarr", 8629, false},  {"cup", 8746, false},     {"curren", 164, true},
    {"dArr", 8659, false},    {"dagger", 8224, false}, {"darr", 8595, false},    {"deg", 176, true},
    {"delta", 948, false},    {"diams", 9830, false},  {"divide", 247, true},    {"eacute", 233, true},
    {"ecirc", 234, true},     {"egrave", 232, true},   {"empty", 8709, false},   {"emsp", 8195, false},
    {"ensp", 8194, false},    {"epsilon", 949, false}, {"equiv", 8801, false},   {"eta", 951, false},
    {"eth", 240, true},       {"euml", 235, true},     {"euro", 8364, false},    {"exist", 8707, false},
    {"fnof", 402, false},     {"forall", 8704, false}, {"frac12", 189, true},    {"frac14", 188, true},
    {"frac34", 190, true},    {"frasl", 8260, false},  {"gamma", 947, false},    {"ge", 8805, false},
    {"gt", 62, true},         {"hArr", 8660, false},   {"harr", 8596, false},    {"hearts", 9829, false},
    {"hellip", 8230, false},  {"iacute", 237, true},   {"icirc", 238, true},     {"iexcl", 161, true},
    {"igrave", 236, true},    {"image", 8465, false},  {"infin", 8734, false},   {"int", 8747, false},
    {"iota", 953, false},     {"iquest", 191, true},   {"isin", 8712, false},    {"iuml", 239, true},
    {"kappa", 954, false},    {"lArr", 8656, false},   {"lambda", 955, false},   {"lang", 10216, false},
    {"laquo", 171, true},     {"larr", 8592, false},   {"lceil", 8968, false},   {"ldquo", 8220, false},
    {"le", 8804, false},      {"lfloor", 8970, false}, {"lowast", 8727, false},  {"loz", 9674, false},
    {"lrm", 8206, false},     {"lsaquo", 8249, false}, {"lsquo", 8216, false},   {"lt", 60, true},
    {"macr", 175, true},      {"mdash", 8212, false},  {"micro", 181, true},     {"middot", 183, true},
    {"minus", 8722, false},   {"mu", 956, false},      {"nabla", 8711, false},   {"nbsp", 160, true},
    {"ndash", 8211, false},   {"ne", 8800, false},     {"ni", 8715, false},      {"not", 172, true},
    {"notin", 8713, false},   {"nsub", 8836, false},   {"ntilde", 241, true},    {"nu", 957, false},
    {"oacute", 243, true},    {"ocirc", 244, true},    {"oelig", 339, false},    {"ograve", 242, true},
    {"oline", 8254, false},   {"omega", 969, false},   {"omicron", 959, false},  {"oplus", 8853, false},
    {"or", 8744, false},      {"ordf", 170, true},     {"ordm", 186, true},      {"oslash", 248, true},
    {"otilde", 245, true},    {"otimes", 8855, false}, {"ouml", 246, true},      {"para", 182, true},
    {"part", 8706, false},    {"permil", 8240, false}, {"perp", 8869, false},    {"phi", 966, false},
    {"pi", 960, false},       {"piv", 982, false},     {"plusmn", 177, true},    {"pound", 163, true},
    {"prime", 8242, false},   {"prod", 8719, false},   {"prop", 8733, false},    {"psi", 968, false},
    {"quot", 34, true},       {"rArr", 8658, false},   {"radic", 8730, false},   {"rang", 10217, false},
    {"raquo", 187, true},     {"rarr", 8594, false},   {"rceil", 8969, false},   {"rdquo", 8221, false},
    {"real", 8476, false},    {"reg", 174, true},      {"rfloor", 8971, false},  {"rho", 961, false},
    {"rlm", 8207, false},     {"rsaquo", 8250, false}, {"rsquo", 8217, false},   {"sbquo", 8218, false},
    {"scaron", 353, false},   {"sdot", 8901, false},   {"sect", 167, true},      {"shy", 173, true},
    {"sigma", 963, false},    {"sigmaf", 962, false},  {"sim", 8764, false},     {"spades", 9824, false},
    {"sub", 8834, false},     {"sube", 8838, false},   {"sum", 8721, false},     {"sup", 8835, false},
    {"sup1", 185, true},      {"sup2", 178, true},     {"sup3", 179, true},      {"supe", 8839, false},
    {"szlig", 223, true},     {"tau", 964, false},     {"there4", 8756, false},  {"theta", 952, false},
    {"thetasym", 977, false}, {"thinsp", 8201, false}, {"thorn", 254, true},     {"tilde", 732, false},
    {"times", 215, true},     {"trade", 8482, false},  {"uArr", 8657, false},    {"uacute", 250, true},
    {"uarr", 8593, false},    {"ucirc", 251, true},    {"ugrave", 249, true},    {"uml", 168, true},
    {"upsih", 978, false},    {"upsilon", 965, false}, {"uuml", 252, true},      {"weierp", 8472, false},
    {"xi", 958, false},       {"yacute", 253, true},   {"yen", 165, true},       {"yuml", 255, true},
    {"zeta", 950, false},     {"zwj", 8205, false},    {"zwnj", 8204, false}};

// HTML reads the numeric references &#128; to &#159; as Windows-1252.
constexpr char16_t kWindows1252[] = {0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021,
                                     0x2c6,  0x2030, 0x160,  0x2039, 0x152,  0x8d,   0x17d,  0x8f,
                                     0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
                                     0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178};

const Entity* FindEntity(std::string_view name) {
  const auto before = [](const Entity& entity, std::string_view other) { return entity.name < other; };
  const Entity* found = std::lower_bound(std::begin(kEntities), std::end(kEntities), name, before);
  return found != std::end(kEntities) && found->name == name ? found : nullptr;
}

struct Reference {
  size_t length = 0;  // bytes of the source text; 0 if there is no reference
  std::string text;
};

// Reads &#123; or &#x7b;, with or without the semicolon. REQUIRES: text starts with "&#".
Reference ReadNumber(std::string_view text) {
  const bool is_hex = text.size() > 2 && (text[2] == 'x' || text[2] == 'X');
  const uint32_t base = is_hex ? 16 : 10;
  const size_t first = is_hex ? 3 : 2;
  size_t end = first;
  uint32_t value = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    uint32_t digit = base;
    if (c >= '0' && c <= '9') digit = static_cast<uint32_t>(c - '0');
    if (is_hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
      digit = static_cast<uint32_t>((c | 0x20) - 'a') + 10;
    if (digit >= base) break;
    value = std::min(value * base + digit, uint32_t{0x110000});
  }
  if (end == first) return {};
  Reference result{end, ""};
  if (end < text.size() && text[end] == ';') ++result.length;
  const bool is_control =
      (value >= 1 && value <= 8) || value == 0xB || (value >= 0xE && value <= 0x1F) || value == 0x7F;
  const bool is_noncharacter = (value >= 0xFDD0 && value <= 0xFDEF) || (value & 0xFFFE) == 0xFFFE;
  if (value >= 0x80 && value < 0xA0) {
    AppendCodePoint(kWindows1252[value - 0x80], result.text);
  } else if (value == 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    AppendCodePoint(0xFFFD, result.text);
  } else if (!is_control && !is_noncharacter) {
    AppendCodePoint(value, result.text);
  }
  return result;
}

// Reads &name; or else the longest prefix that is a name whose semicolon is optional. REQUIRES: text starts with "&".
Reference ReadName(std::string_view text) {
  constexpr size_t kLongestName = 32;
  const size_t end = std::min(text.find_first_of("\t\n\f <&#;", 1), text.size());
  const std::string_view name = text.substr(1, std::min(end - 1, kLongestName));
  Reference result;
  if (end - 1 <= kLongestName && end < text.size() && text[end] == ';') {
    if (const Entity* entity = FindEntity(name)) {
      AppendCodePoint(entity->code_point, result.text);
      result.length = end + 1;
      return result;
    }
  }
  for (size_t length = name.size(); length > 1; --length) {
    const Entity* entity = FindEntity(name.substr(0, length));
    if (entity == nullptr || !entity->has_optional_semicolon) continue;
    AppendCodePoint(entity->code_point, result.text);
    result.length = 1 + length;
    return result;
  }
  return result;
}

// html.unescape, except that it knows only the names in kEntities.
std::string UnescapeHtml(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t next = std::min(text.find('&', i), text.size());
    out += text.substr(i, next - i);
    if (next == text.size()) break;
    const std::string_view rest = text.substr(next);
    const Reference reference = rest.starts_with("&#") ? ReadNumber(rest) : ReadName(rest);
    if (reference.length == 0) out += '&';
    out += reference.text;
    i = next + std::max<size_t>(reference.length, 1);
  }
  return out;
}

// Removes <...> and <!--...-->, up to the first tag or comment that is not closed.
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
    if (!key.is_string()) throw EvalError(std::string("xmlattr needs strings as keys, not ") + TypeName(key.kind()));
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

}  // namespace vllm::tokenizer::jinja
