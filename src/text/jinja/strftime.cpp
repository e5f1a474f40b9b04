#include "text/jinja/strftime.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "text/jinja/error.h"
#include "text/jinja/unicode.h"

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

/// What Python's datetime.strftime does itself before the C library sees the format: microseconds, and a
/// zone, which there is none of.
std::string without_python_directives(std::string_view format, const Fields& f) {
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    out += format[at];
    if (format[at] != '%' || at + 1 == format.size()) continue;
    const char type = format[++at];
    if (type != 'f' && type != 'z' && type != 'Z') {
      out += type;
      continue;
    }
    out.pop_back();
    if (type == 'f') out += fmt::format("{:06d}", f.microsecond);
  }
  return out;
}

/// glibc's strftime in the C locale.
class Formatter {
 public:
  /// `most`: characters of the text, about; what would be longer ends the work.
  Formatter(std::string_view format, const Fields& fields, size_t most)
      : format_(format), f_(fields), most_(most) {}

  std::string run() {
    while (at_ < format_.size() && out_.size() <= most_) {
      const char c = format_[at_++];
      if (c == '%') {
        directive();
      } else {
        out_ += c;
      }
    }
    return std::move(out_);
  }

 private:
  void directive() {
    begin_ = at_ - 1;
    pad_ = modifier_ = '\0';
    upper_ = swap_ = lower_ = false;
    width_ = 0;
    for (; at_ < format_.size(); ++at_) {
      const char c = format_[at_];
      if (c == '-' || c == '_' || c == '0') {
        pad_ = c;
      } else if (c == '^') {
        upper_ = true;
      } else if (c == '#') {
        swap_ = true;
      } else {
        break;
      }
    }
    for (; at_ < format_.size() && format_[at_] >= '0' && format_[at_] <= '9'; ++at_)
      width_ = std::min(width_ * 10 + static_cast<size_t>(format_[at_] - '0'), kWidest);
    if (at_ < format_.size() && (format_[at_] == 'E' || format_[at_] == 'O')) modifier_ = format_[at_++];
    const char type = at_ < format_.size() ? format_[at_] : '\0';
    if (at_ < format_.size()) at_ += static_cast<size_t>(decode_utf8(format_.substr(at_)).length);
    // Abbreviated months are written large before their modifier is refused.
    upper_ = upper_ || (swap_ && (type == 'b' || type == 'h'));
    const bool has_modifiers =
        modifier_ == '\0' || (modifier_ == 'E' ? kWithE : kWithO).find(type) != std::string_view::npos;
    if (type == '\0' || !has_modifiers || !expand(type))
      text(std::string(format_.substr(begin_, at_ - begin_)));
  }

  void number(int64_t value, size_t digits, bool with_spaces = false) {
    if (with_spaces && pad_ != '0' && pad_ != '-') pad_ = '_';
    std::string text = std::to_string(value);
    const size_t wanted = std::min(std::max(digits, width_), most_ + 1);
    if (pad_ != '-' && text.size() < wanted) text.insert(0, wanted - text.size(), pad_ == '_' ? ' ' : '0');
    add(text);
  }

  /// Text whose case the flags change.
  void text(const std::string& value) {
    std::string changed;
    for (size_t at = 0; at < value.size();) {
      const Utf8Char c = decode_utf8(std::string_view(value).substr(at));
      std::string other;
      if (lower_) {
        append_lower(other, c.code);
      } else if (upper_) {
        append_upper(other, c.code);
      }
      const auto length = static_cast<size_t>(c.length);
      changed += count_code_points(other) == 1 ? other : value.substr(at, length);
      at += length;
    }
    add(changed);
  }

  void name(std::string_view value) {
    upper_ = upper_ || swap_;
    text(std::string(value));
  }

  void add(const std::string& value) {
    const size_t length = count_code_points(value);
    if (length < width_) out_.append(std::min(width_ - length, most_ + 1), pad_ == '0' ? '0' : ' ');
    out_ += value;
  }

  void composed(std::string_view format) { text(Formatter(format, f_, most_).run()); }

  bool expand(char type) {
    const int hour12 = f_.hour % 12 == 0 ? 12 : f_.hour % 12;
    int iso_year = 0;
    int week = 0;
    iso_week(f_, iso_year, week);
    switch (type) {
      case 'a':
        name(std::string_view(kDays[static_cast<size_t>(f_.weekday)]).substr(0, 3));
        return true;
      case 'A':
        name(kDays[static_cast<size_t>(f_.weekday)]);
        return true;
      case 'b':
      case 'h':
        name(std::string_view(kMonths[static_cast<size_t>(f_.month - 1)]).substr(0, 3));
        return true;
      case 'B':
        name(kMonths[static_cast<size_t>(f_.month - 1)]);
        return true;
      case 'c':
        composed("%a %b %e %H:%M:%S %Y");
        return true;
      case 'C':
        number(f_.year / 100, 1);
        return true;
      case 'd':
        number(f_.day, 2);
        return true;
      case 'D':
      case 'x':
        composed("%m/%d/%y");
        return true;
      case 'e':
        number(f_.day, 2, true);
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
        number(f_.hour, 2, true);
        return true;
      case 'l':
        number(hour12, 2, true);
        return true;
      case 'm':
        number(f_.month, 2);
        return true;
      case 'M':
        number(f_.minute, 2);
        return true;
      case 'n':
        add("\n");
        return true;
      case 'p':
      case 'P':
        lower_ = type == 'P' || swap_;
        text(f_.hour < 12 ? "AM" : "PM");
        return true;
      case 'r':
        composed("%I:%M:%S %p");
        return true;
      case 'R':
        composed("%H:%M");
        return true;
      case 's':
        add(std::to_string(f_.seconds));
        return true;
      case 'S':
        number(f_.second, 2);
        return true;
      case 't':
        add("\t");
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
      case 'Z':
        add("");
        return true;
      case 'z':
        return true;  // a time without zone
      case '%':
        add("%");
        return true;
      default:
        return false;
    }
  }

  // Directives that the modifiers go with.
  static constexpr std::string_view kWithE = "%cCnpPrRstTuxXyYzZ";
  static constexpr std::string_view kWithO = "%bBCdeGgHhIjklmMnpPrRsStTuUVwWyzZ";
  static constexpr size_t kWidest = size_t{1} << 30;

  std::string_view format_;
  const Fields& f_;
  size_t most_;
  size_t at_ = 0;
  size_t begin_ = 0;  // of the directive
  std::string out_;
  char pad_ = '\0', modifier_ = '\0';
  bool upper_ = false, swap_ = false, lower_ = false;
  size_t width_ = 0;
};

}  // namespace

std::string format_time(std::string_view format, LocalTime time) {
  if (format.find('\0') != std::string_view::npos) fail("strftime: embedded null character");
  const Fields fields = fields_of(time);
  const std::string c_format = without_python_directives(format, fields);
  // Python's buffer, in characters, as it grows; where the text does not fit, Python gives none.
  const size_t limit = 256 * count_code_points(c_format);
  size_t room = 1024;
  while (room < limit) room *= 2;
  std::string text = Formatter(c_format, fields, 4 * room).run();
  return count_code_points(text) < room ? text : "";
}

}  // namespace qwench::jinja
