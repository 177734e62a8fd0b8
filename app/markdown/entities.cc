#include "app/markdown/entities.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 44> kNamed = {{
    {"amp", "&"},   {"lt", "<"},     {"gt", ">"},    {"quot", "\""},  {"apos", "'"},   {"nbsp", "\u00A0"},
    {"copy", "©"},  {"reg", "®"},    {"trade", "™"}, {"hellip", "…"}, {"mdash", "—"},  {"ndash", "–"},
    {"lsquo", "‘"}, {"rsquo", "’"},  {"ldquo", "“"}, {"rdquo", "”"},  {"laquo", "«"},  {"raquo", "»"},
    {"bull", "•"},  {"middot", "·"}, {"times", "×"}, {"divide", "÷"}, {"plusmn", "±"}, {"deg", "°"},
    {"le", "≤"},    {"ge", "≥"},     {"ne", "≠"},    {"asymp", "≈"},  {"rarr", "→"},   {"larr", "←"},
    {"uarr", "↑"},  {"darr", "↓"},   {"harr", "↔"},  {"infin", "∞"},  {"sum", "∑"},    {"radic", "√"},
    {"alpha", "α"}, {"beta", "β"},   {"pi", "π"},    {"micro", "µ"},  {"euro", "€"},   {"pound", "£"},
    {"sect", "§"},  {"para", "¶"},
}};

}  // namespace

std::string DecodeEntity(std::string_view entity) {
  if (entity.size() < 3) return std::string(entity);
  std::string_view name = entity.substr(1, entity.size() - 2);
  if (name[0] == '#') {
    name.remove_prefix(1);
    const bool is_hex = !name.empty() && (name[0] == 'x' || name[0] == 'X');
    if (is_hex) name.remove_prefix(1);
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value, is_hex ? 16 : 10);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (value == '\t' || value == '\n' || value == '\r') value = ' ';
    const bool is_scalar = is_number && value > 0 && value < 0x110000 && (value < 0xD800 || value > 0xDFFF);
    std::string text;
    tokenizer::AppendCodePoint(is_scalar ? value : 0xFFFD, text);
    return text;
  }
  for (const auto& [known, text] : kNamed) {
    if (known == name) return std::string(text);
  }
  return std::string(entity);
}

}  // namespace vllm::app
