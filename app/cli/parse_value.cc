#include "app/cli/parse_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

[[noreturn]] void Fail(const char* why, std::string_view text) {
  throw ConfigError(std::string(why) + " (" + std::string(text.substr(0, 80)) + ")");
}

template <typename T>
T ParseWhole(std::string_view text, const char* why) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits.front() == '+') digits.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) Fail("out of range", text);
  if (error != std::errc() || end != digits.data() + digits.size()) Fail(why, text);
  return value;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

// Removes the leading dashes of a flag or the slash of a chat command.
std::string_view WithoutPrefix(std::string_view name) {
  const size_t first = name.find_first_not_of("-/");
  return first == std::string_view::npos ? std::string_view() : name.substr(first);
}

// Returns the optimal string alignment distance (the restricted Damerau-Levenshtein distance): the smallest number of
// insertions, deletions, substitutions and swaps of adjacent characters that turns `a` into `b` if no substring is
// edited twice.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last.back();
}

}  // namespace

int64_t ParseInteger(std::string_view text) { return ParseWhole<int64_t>(text, "must be a whole number"); }

uint64_t ParseUnsigned(std::string_view text) {
  return ParseWhole<uint64_t>(text, "must be a whole number, at least 0");
}

double ParseNumber(std::string_view text) {
  const double value = ParseWhole<double>(text, "must be a number");
  if (!std::isfinite(value)) Fail("must be a finite number", text);
  return value;
}

int64_t ParseSize(std::string_view text) {
  std::string_view rest = text;
  if (!rest.empty() && (rest.back() == 'B' || rest.back() == 'b')) rest.remove_suffix(1);
  bool binary = false;
  if (!rest.empty() && rest.back() == 'i') {
    binary = true;
    rest.remove_suffix(1);
  }
  int power = 0;
  if (!rest.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const char unit = rest.back() == 'k' ? 'K' : rest.back();
    const size_t index = kUnits.find(unit);
    if (index != std::string_view::npos) {
      power = static_cast<int>(index) + 1;
      rest.remove_suffix(1);
    }
  }
  if (binary && power == 0) Fail("must be a size such as 512M or 2Gi", text);
  const double number = ParseWhole<double>(rest, "must be a size such as 512M or 2Gi");
  const double bytes = number * std::pow(binary ? 1024.0 : 1000.0, power);
  if (!(bytes >= 0.0 && bytes <= 9.0e18)) Fail("must be a size such as 512M or 2Gi", text);
  return static_cast<int64_t>(bytes);
}

void ParseIds(std::string_view text, std::vector<int32_t>& ids) {
  std::string_view rest = Trim(text);
  if (rest.size() >= 2 && rest.front() == '[' && rest.back() == ']') {
    rest.remove_prefix(1);
    rest.remove_suffix(1);
    if (Trim(rest).empty()) return;
  }
  while (true) {
    const size_t comma = rest.find(',');
    ids.push_back(ParseWhole<int32_t>(Trim(rest.substr(0, comma)), "must be token ids such as 1,2,3"));
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
}

std::pair<int32_t, float> ParseBias(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) Fail("must be ID=V", text);
  const int32_t id = ParseWhole<int32_t>(text.substr(0, equals), "must be ID=V");
  return {id, static_cast<float>(ParseNumber(text.substr(equals + 1)))};
}

bool ParseSwitch(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  Fail("must be true or false", text);
}

std::string ParseChoice(std::string_view text, std::string_view choices) {
  std::string_view rest = choices;
  while (!rest.empty()) {
    const size_t bar = rest.find('|');
    if (rest.substr(0, bar) == text) return std::string(text);
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 1);
  }
  Fail(("must be one of " + std::string(choices)).c_str(), text);
}

std::string NearestName(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string_view typed = WithoutPrefix(name);
  std::string best;
  if (typed.size() > 64) return best;
  // Any two single letters are one edit apart, so a one-letter name gets no suggestion.
  const size_t limit = typed.size() >= 6 ? 2 : typed.size() >= 2 ? 1 : 0;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(typed, WithoutPrefix(candidate));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return limit == 0 ? "" : best;
}

}  // namespace vllm::app
