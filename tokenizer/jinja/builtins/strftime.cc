#include "tokenizer/jinja/builtins/strftime.h"

#include <array>
#include <cstdio>

namespace vllm::jinja {
namespace {

constexpr std::array<const char*, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
constexpr std::array<const char*, 12> kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                                 "July",    "August",   "September", "October", "November", "December"};

bool IsLeap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }
int DaysIn(int month, int year) {
  static constexpr std::array<int, 12> kLengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 1 && IsLeap(year) ? 29 : kLengths[static_cast<size_t>(month)];
}

struct IsoWeek {
  int year;
  int week;
};
IsoWeek IsoWeekOf(const std::tm& time) {
  const int year = time.tm_year + 1900;
  const int weekday = (time.tm_wday + 6) % 7;  // Monday is 0
  const int week = (time.tm_yday - weekday + 10) / 7;
  const auto weeks_in = [](int y) {
    const auto p = [](int z) { return (z + z / 4 - z / 100 + z / 400) % 7; };
    return p(y) == 4 || p(y - 1) == 3 ? 53 : 52;
  };
  if (week < 1) return {year - 1, weeks_in(year - 1)};
  if (week > weeks_in(year)) return {year + 1, 1};
  return {year, week};
}

std::string Padded(int value, int width, char pad, bool no_pad) {
  std::string digits = std::to_string(value);
  while (!no_pad && static_cast<int>(digits.size()) < width) digits.insert(digits.begin(), pad);
  return digits;
}

std::string Directive(char c, const std::tm& time, bool no_pad) {
  const auto number = [&](int value, int width = 2, char pad = '0') { return Padded(value, width, pad, no_pad); };
  const char* day = kDays[static_cast<size_t>(time.tm_wday)];
  const char* month = kMonths[static_cast<size_t>(time.tm_mon)];
  const int year = time.tm_year + 1900;
  const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  switch (c) {
    case 'a':
      return std::string(day, 3);
    case 'A':
      return day;
    case 'b':
    case 'h':
      return std::string(month, 3);
    case 'B':
      return month;
    case 'c':
      return Strftime("%a %b %e %H:%M:%S %Y", time);
    case 'C':
      return number(year / 100);
    case 'd':
      return number(time.tm_mday);
    case 'D':
    case 'x':
      return Strftime("%m/%d/%y", time);
    case 'e':
      return number(time.tm_mday, 2, ' ');
    case 'f':
      return "000000";  // the clock has whole seconds
    case 'F':
      return Strftime("%Y-%m-%d", time);
    case 'g':
      return number(IsoWeekOf(time).year % 100);
    case 'G':
      return std::to_string(IsoWeekOf(time).year);
    case 'H':
      return number(time.tm_hour);
    case 'I':
      return number(hour12);
    case 'j':
      return number(time.tm_yday + 1, 3);
    case 'k':
      return number(time.tm_hour, 2, ' ');
    case 'l':
      return number(hour12, 2, ' ');
    case 'm':
      return number(time.tm_mon + 1);
    case 'M':
      return number(time.tm_min);
    case 'n':
      return "\n";
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'P':
      return time.tm_hour < 12 ? "am" : "pm";
    case 'r':
      return Strftime("%I:%M:%S %p", time);
    case 'R':
      return Strftime("%H:%M", time);
    case 'S':
      return number(time.tm_sec);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return Strftime("%H:%M:%S", time);
    case 'u':
      return std::to_string(time.tm_wday == 0 ? 7 : time.tm_wday);
    case 'U':
      return number((time.tm_yday + 7 - time.tm_wday) / 7);
    case 'V':
      return number(IsoWeekOf(time).week);
    case 'w':
      return std::to_string(time.tm_wday);
    case 'W':
      return number((time.tm_yday + 7 - (time.tm_wday + 6) % 7) / 7);
    case 'y':
      return number(year % 100);
    case 'Y':
      return std::to_string(year);
    case 'z':
    case 'Z':
      return "";  // a naive time, as datetime.now() gives
    case '%':
      return "%";
    default:
      return std::string(no_pad ? "%-" : "%") + c;
  }
}

}  // namespace

std::string Strftime(std::string_view format, const std::tm& time) {
  std::string result;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 >= format.size()) {
      result += format[i];
      continue;
    }
    ++i;
    const bool no_pad = format[i] == '-' && i + 1 < format.size();
    if (no_pad) ++i;
    result += Directive(format[i], time, no_pad);
  }
  return result;
}

bool ParseDate(std::string_view text, std::tm& time) {
  const auto digits = [&](size_t at, size_t count, int& value) {
    if (at + count > text.size()) return false;
    value = 0;
    for (size_t i = at; i < at + count; ++i) {
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
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > DaysIn(month - 1, year)) return false;
  if (hour > 23 || minute > 59 || second > 59) return false;
  time = {};
  time.tm_year = year - 1900;
  time.tm_mon = month - 1;
  time.tm_mday = day;
  time.tm_hour = hour;
  time.tm_min = minute;
  time.tm_sec = second;
  for (int i = 0; i < month - 1; ++i) time.tm_yday += DaysIn(i, year);
  time.tm_yday += day - 1;
  // Days since a Monday, 1 January of year 1.
  const int before = year - 1;
  time.tm_wday = (before * 365 + before / 4 - before / 100 + before / 400 + time.tm_yday + 1) % 7;
  time.tm_isdst = -1;
  return true;
}

}  // namespace vllm::jinja
