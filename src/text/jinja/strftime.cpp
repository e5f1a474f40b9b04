#include "text/jinja/strftime.h"

#include <fmt/format.h>

#include <array>

#include "text/jinja/error.h"

namespace qwench::jinja {
namespace {

constexpr std::array kDays = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array kMonths = {"January", "February", "March",     "April",   "May",      "June",
                                "July",    "August",   "September", "October", "November", "December"};

struct Fields {
  int year, month, day;  // month and day from 1
  int hour, minute, second;
  int microsecond;
  int weekday;   // 0: Sunday
  int year_day;  // from 1
  int64_t seconds;
};

Fields fields_of(LocalTime time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::local_days new_year(
      std::chrono::year_month_day(date.year(), std::chrono::January, std::chrono::day(1)));
  const auto in_day = std::chrono::duration_cast<std::chrono::microseconds>(time - days).count();
  Fields f{};
  f.year = static_cast<int>(date.year());
  f.month = static_cast<int>(static_cast<unsigned>(date.month()));
  f.day = static_cast<int>(static_cast<unsigned>(date.day()));
  f.hour = static_cast<int>(in_day / 3'600'000'000);
  f.minute = static_cast<int>(in_day / 60'000'000 % 60);
  f.second = static_cast<int>(in_day / 1'000'000 % 60);
  f.microsecond = static_cast<int>(in_day % 1'000'000);
  f.weekday = static_cast<int>(std::chrono::weekday(days).c_encoding());
  f.year_day = static_cast<int>((days - new_year).count()) + 1;
  f.seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  return f;
}

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

/// The year and week of ISO 8601.
void iso_week(const Fields& f, int& year, int& week) {
  const int weekday = (f.weekday + 6) % 7;  // 0: Monday
  year = f.year;
  week = (f.year_day - 1 - weekday + 10) / 7;
  if (week < 1) {
    --year;
    const int days = is_leap(year) ? 366 : 365;
    week = (f.year_day - 1 + days - weekday + 10) / 7;
  } else if (week == 53) {
    const int days = is_leap(year) ? 366 : 365;
    if (f.year_day - 1 - weekday + 3 >= days) {
      ++year;
      week = 1;
    }
  }
}

class Formatter {
 public:
  Formatter(std::string_view format, const Fields& fields) : format_(format), f_(fields) {}

  std::string run() {
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c == '%' && at_ < format_.size())
        directive();
      else
        out_ += c;
    }
    return std::move(out_);
  }

 private:
  void directive() {
    const size_t begin = at_ - 1;
    flag_ = '\0';
    upper_ = swap_ = false;
    width_ = -1;
    for (; at_ < format_.size(); ++at_) {
      const char c = format_[at_];
      if (c == '-' || c == '_' || c == '0' || c == '+')
        flag_ = c;
      else if (c == '^')
        upper_ = true;
      else if (c == '#')
        swap_ = true;
      else
        break;
    }
    while (at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9') {
      width_ = std::max(width_, 0) * 10 + (format_[at_++] - '0');
      if (width_ > 10000) fail("the width of a strftime directive is too large");
    }
    if (at_ < format_.size() && (format_[at_] == 'E' || format_[at_] == 'O')) ++at_;
    const char type = at_ < format_.size() ? format_[at_++] : '\0';
    if (!expand(type)) out_ += format_.substr(begin, at_ - begin);
  }

  void number(int64_t value, int digits, char pad = '0') {
    if (flag_ == '_') pad = ' ';
    if (flag_ == '0' || flag_ == '+') pad = '0';
    std::string text = std::to_string(value < 0 ? -value : value);
    const int width = flag_ == '-' && width_ < 0 ? 0 : std::max(digits, width_);
    const bool negative = value < 0;
    while (static_cast<int>(text.size()) + (negative ? 1 : 0) < width) text.insert(text.begin(), pad);
    if (negative) text.insert(text.begin(), '-');
    out_ += text;
  }

  void text(std::string value, bool swap_to_lower = false) {
    if (upper_ || (swap_ && !swap_to_lower)) {
      for (char& c : value) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    } else if (swap_) {
      for (char& c : value) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
    while (static_cast<int>(value.size()) < width_) value.insert(value.begin(), flag_ == '0' ? '0' : ' ');
    out_ += value;
  }

  void composed(std::string_view format) { text(Formatter(format, f_).run()); }

  bool expand(char type) {
    const int hour12 = f_.hour % 12 == 0 ? 12 : f_.hour % 12;
    int iso_year = 0;
    int week = 0;
    iso_week(f_, iso_year, week);
    switch (type) {
      case 'a':
        text(std::string(kDays[static_cast<size_t>(f_.weekday)]).substr(0, 3));
        return true;
      case 'A':
        text(kDays[static_cast<size_t>(f_.weekday)]);
        return true;
      case 'b':
      case 'h':
        text(std::string(kMonths[static_cast<size_t>(f_.month - 1)]).substr(0, 3));
        return true;
      case 'B':
        text(kMonths[static_cast<size_t>(f_.month - 1)]);
        return true;
      case 'c':
        composed("%a %b %e %H:%M:%S %Y");
        return true;
      case 'C':
        number(f_.year / 100, 2);
        return true;
      case 'd':
        number(f_.day, 2);
        return true;
      case 'D':
      case 'x':
        composed("%m/%d/%y");
        return true;
      case 'e':
        number(f_.day, 2, ' ');
        return true;
      case 'f':
        out_ += fmt::format("{:06d}", f_.microsecond);
        return true;
      case 'F':
        composed("%Y-%m-%d");
        return true;
      case 'g':
        number(iso_year % 100, 2);
        return true;
      case 'G':
        number(iso_year, 1);
        return true;
      case 'H':
        number(f_.hour, 2);
        return true;
      case 'I':
        number(hour12, 2);
        return true;
      case 'j':
        number(f_.year_day, 3);
        return true;
      case 'k':
        number(f_.hour, 2, ' ');
        return true;
      case 'l':
        number(hour12, 2, ' ');
        return true;
      case 'm':
        number(f_.month, 2);
        return true;
      case 'M':
        number(f_.minute, 2);
        return true;
      case 'n':
        text("\n");
        return true;
      case 'p':
        text(f_.hour < 12 ? "AM" : "PM", true);
        return true;
      case 'P':
        text(f_.hour < 12 ? "am" : "pm");
        return true;
      case 'r':
        composed("%I:%M:%S %p");
        return true;
      case 'R':
        composed("%H:%M");
        return true;
      case 's':
        number(f_.seconds, 1);
        return true;
      case 'S':
        number(f_.second, 2);
        return true;
      case 't':
        text("\t");
        return true;
      case 'T':
      case 'X':
        composed("%H:%M:%S");
        return true;
      case 'u':
        number(f_.weekday == 0 ? 7 : f_.weekday, 1);
        return true;
      case 'U':
        number((f_.year_day - 1 + 7 - f_.weekday) / 7, 2);
        return true;
      case 'V':
        number(week, 2);
        return true;
      case 'w':
        number(f_.weekday, 1);
        return true;
      case 'W':
        number((f_.year_day - 1 + 7 - (f_.weekday + 6) % 7) / 7, 2);
        return true;
      case 'y':
        number(f_.year % 100, 2);
        return true;
      case 'Y':
        number(f_.year, 1);
        return true;
      case 'z':
      case 'Z':
        return true;  // a time without zone
      case '%':
        text("%");
        return true;
      default:
        return false;
    }
  }

  std::string_view format_;
  const Fields& f_;
  size_t at_ = 0;
  std::string out_;
  char flag_ = '\0';
  bool upper_ = false, swap_ = false;
  int width_ = -1;
};

}  // namespace

std::string format_time(std::string_view format, LocalTime time) {
  return Formatter(format, fields_of(time)).run();
}

}  // namespace qwench::jinja
