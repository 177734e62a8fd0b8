#include "tokenizer/jinja/builtins/strftime.h"

#include <clocale>

#include <algorithm>
#include <array>
#include <chrono>

namespace vllm::tokenizer::jinja {
namespace {

// Returns the directive that `text` starts with: "%", flags, width, modifier and conversion. Returns only "%" if the
// conversion is missing or NUL. REQUIRES: text starts with "%".
std::string_view DirectiveAt(std::string_view text) {
  size_t end = std::min(text.find_first_not_of("_-0^#+", 1), text.size());
  end = std::min(text.find_first_not_of("0123456789", end), text.size());
  if (end < text.size() && (text[end] == 'E' || text[end] == 'O')) ++end;
  const bool is_complete = end < text.size() && text[end] != '\0';
  return text.substr(0, is_complete ? end + 1 : 1);
}

std::string Directive(const std::string& directive, const std::tm& time) {
  switch (directive.back()) {
    case 'f':
      return "000000";  // the time has no microseconds
    case 'z':
    case 'Z':
      return "";  // a naive time, like datetime.now(), has no time zone
    default:
      break;
  }
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  std::array<char, kMaxDirectiveBytes + 1> buffer;
  const size_t size = strftime_l(buffer.data(), buffer.size(), directive.c_str(), &time, c_locale);
  return size > 0 ? std::string(buffer.data(), size) : directive;
}

}  // namespace

std::string Strftime(std::string_view format, const std::tm& time) {
  std::string result;
  while (!format.empty()) {
    const size_t percent = std::min(format.find('%'), format.size());
    result += format.substr(0, percent);
    format.remove_prefix(percent);
    if (format.empty()) break;
    const std::string directive(DirectiveAt(format));
    result += Directive(directive, time);
    format.remove_prefix(directive.size());
  }
  return result;
}

bool ParseDate(std::string_view text, std::tm& time) {
  const auto digits = [&](size_t offset, size_t count, int& value) {
    if (offset + count > text.size()) return false;
    value = 0;
    for (size_t i = offset; i < offset + count; ++i) {
      if (text[i] < '0' || text[i] > '9') return false;
      value = value * 10 + (text[i] - '0');
    }
    return true;
  };
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!(text.size() == 10 || text.size() == 19) || !digits(0, 4, year) || text[4] != '-' || !digits(5, 2, month) ||
      text[7] != '-' || !digits(8, 2, day)) {
    return false;
  }
  if (text.size() == 19 && ((text[10] != 'T' && text[10] != ' ') || !digits(11, 2, hour) || text[13] != ':' ||
                            !digits(14, 2, minute) || text[16] != ':' || !digits(17, 2, second))) {
    return false;
  }
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (year < 1 || !date.ok() || hour > 23 || minute > 59 || second > 59) return false;
  const std::chrono::sys_days days(date);
  time = {};
  time.tm_year = year - 1900;
  time.tm_mon = month - 1;
  time.tm_mday = day;
  time.tm_hour = hour;
  time.tm_min = minute;
  time.tm_sec = second;
  time.tm_yday = static_cast<int>((days - std::chrono::sys_days(date.year() / 1 / 1)).count());
  time.tm_wday = static_cast<int>(std::chrono::weekday(days).c_encoding());
  time.tm_isdst = -1;
  return true;
}

}  // namespace vllm::tokenizer::jinja
