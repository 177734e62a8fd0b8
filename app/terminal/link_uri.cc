#include "app/terminal/link_uri.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode/ascii.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxUriBytes = 2000;

bool IsPrintableAscii(char c) { return c > 0x20 && c < 0x7F; }

std::string DisplayHost(std::string_view host) {
  std::string shown;
  size_t begin = 0;
  while (true) {
    const size_t dot = std::min(host.find('.', begin), host.size());
    shown += PunycodeLabel(host.substr(begin, dot - begin));
    if (dot == host.size()) return shown;
    shown += '.';
    begin = dot + 1;
  }
}

// RFC 3492, section 6.1.
uint32_t AdaptBias(uint32_t delta, uint32_t num_points, bool is_first) {
  delta = is_first ? delta / 700 : delta / 2;
  delta += delta / num_points;
  uint32_t k = 0;
  while (delta > 455) {
    delta /= 35;
    k += 36;
  }
  return k + 36 * delta / (delta + 38);
}

char PunycodeDigit(uint32_t digit) { return static_cast<char>(digit < 26 ? 'a' + digit : '0' + (digit - 26)); }

}  // namespace

std::string PunycodeLabel(std::string_view label) {
  std::vector<uint32_t> points;
  std::string output;
  for (size_t i = 0; i < label.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(label, i);
    const bool is_valid = step.kind == tokenizer::Utf8Step::Kind::kValid;
    points.push_back(is_valid ? step.code_point : 0xFFFD);
    if (points.back() < 0x80) output += static_cast<char>(points.back());
    i += is_valid ? step.length : 1;
  }
  if (output.size() == points.size()) return output;
  // RFC 3492, section 6.3. The code points are below 0x110000 and there are at most kMaxUriBytes, so that no sum
  // overflows 32 bits.
  const size_t num_basic = output.size();
  if (num_basic > 0) output += '-';
  uint32_t n = 0x80;
  uint32_t delta = 0;
  uint32_t bias = 72;
  size_t handled = num_basic;
  while (handled < points.size()) {
    uint32_t next = 0x110000;
    for (const uint32_t point : points) {
      if (point >= n) next = std::min(next, point);
    }
    delta += (next - n) * static_cast<uint32_t>(handled + 1);
    n = next;
    for (const uint32_t point : points) {
      if (point < n) ++delta;
      if (point != n) continue;
      uint32_t rest = delta;
      for (uint32_t k = 36;; k += 36) {
        const uint32_t threshold = k <= bias ? 1 : std::min<uint32_t>(k - bias, 26);
        if (rest < threshold) break;
        output += PunycodeDigit(threshold + (rest - threshold) % (36 - threshold));
        rest = (rest - threshold) / (36 - threshold);
      }
      output += PunycodeDigit(rest);
      bias = AdaptBias(delta, static_cast<uint32_t>(handled + 1), handled == num_basic);
      delta = 0;
      ++handled;
    }
    ++delta;
    ++n;
  }
  return "xn--" + output;
}

std::optional<LinkUri> LinkUri::Parse(std::string_view untrusted) {
  if (untrusted.size() > kMaxUriBytes) return std::nullopt;
  for (const char c : untrusted) {
    if ((c >= 0 && c <= 0x20) || c == 0x7F || c == '\\') return std::nullopt;
  }
  const size_t colon = untrusted.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string scheme = tokenizer::LowerAscii(untrusted.substr(0, colon));
  std::string_view rest = untrusted.substr(colon + 1);
  LinkUri uri;
  std::string_view host;
  if (scheme == "mailto") {
    rest = rest.substr(0, rest.find('?'));
    const size_t at = rest.rfind('@');
    if (at == std::string_view::npos) return std::nullopt;
    host = rest.substr(at + 1);
  } else if (scheme == "http" || scheme == "https") {
    if (!rest.starts_with("//")) return std::nullopt;
    rest.remove_prefix(2);
    rest = rest.substr(0, rest.find_first_of("/?#"));
    // Everything before the last '@' is a user name, which may look like a host.
    if (const size_t at = rest.rfind('@'); at != std::string_view::npos) rest.remove_prefix(at + 1);
    const size_t port = rest.starts_with('[') ? rest.find(':', rest.find(']')) : rest.find(':');
    host = rest.substr(0, port);
  } else {
    return std::nullopt;
  }
  if (host.empty()) return std::nullopt;
  uri.host_ = DisplayHost(tokenizer::LowerAscii(host));
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : untrusted) {
    if (IsPrintableAscii(c)) {
      uri.text_ += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      uri.text_ += '%';
      uri.text_ += kHex[byte >> 4];
      uri.text_ += kHex[byte & 15];
    }
  }
  if (uri.text_.size() > kMaxUriBytes) return std::nullopt;
  return uri;
}

}  // namespace vllm::app
