#include "text/jinja/printf_format.h"

#include <cmath>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/number_format.h"
#include "text/jinja/operations.h"
#include "text/jinja/things.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

constexpr int64_t kMaxWidth = 1 << 30;

bool is_mapping_like(const Value& value) {
  if (value.is(Type::dict) || value.is(Type::list) || value.is_undefined()) return true;
  return value.is(Type::thing) && dynamic_cast<Range*>(&value.as<Thing>()) != nullptr;
}

class PrintfFormatter {
 public:
  PrintfFormatter(Runtime& rt, const String& format, const Value& arguments)
      : rt_(rt), format_(format), text_(format.text.view()), arguments_(arguments) {
    if (arguments.is(Type::tuple)) items_ = &arguments.as<Sequence>().items;
  }

  TrackedText run() {
    size_t copied = 0;
    while ((at_ = text_.find('%', copied)) != std::string_view::npos) {
      out_.append(format_.text, copied, at_);
      conversion();
      copied = at_;
      rt_.check_size(out_.size());
    }
    out_.append(format_.text, copied, text_.size());
    const bool left_over =
        items_ != nullptr ? next_ < items_->size() : next_ == 0 && !is_mapping_like(arguments_);
    if (left_over) fail("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char take() {
    if (at_ >= text_.size()) fail("incomplete format");
    return text_[at_++];
  }

  Value argument() {
    if (!keyed_.is_missing()) return std::exchange(keyed_, Value());
    if (items_ != nullptr) {
      if (next_ >= items_->size()) fail("not enough arguments for format string");
      return (*items_)[next_++];
    }
    if (next_++ != 0) fail("not enough arguments for format string");
    return arguments_;
  }

  void key() {
    const size_t begin = at_;
    int depth = 1;
    while (depth > 0) {
      if (at_ >= text_.size()) fail("incomplete format key");
      const char c = text_[at_++];
      if (c == '(') ++depth;
      if (c == ')') --depth;
    }
    if (!is_mapping_like(arguments_)) fail("format requires a mapping");
    if (arguments_.is_undefined()) fail_undefined(arguments_);
    if (!arguments_.is(Type::dict)) fail("indices must be integers or slices, not str");
    const std::string_view name = text_.substr(begin, at_ - 1 - begin);
    const Value* found = arguments_.as<Dict>().find(name);
    if (found == nullptr) fail(fmt::format("'{}'", name));
    keyed_ = *found;
  }

  int64_t number(const char* what) {
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      const Value value = argument();
      if (!value.is_small_integer()) fail("* wants int");
      if (value.as_integer() > kMaxWidth || value.as_integer() < -kMaxWidth)
        fail(fmt::format("{} too big", what));
      return value.as_integer();
    }
    int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > kMaxWidth) fail(fmt::format("{} too big", what));
    }
    return value;
  }

  void conversion() {
    const bool input = format_.text.is_input(at_);
    ++at_;
    left_ = plus_ = space_ = alternate_ = zero_ = false;
    keyed_ = Value();
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      key();
    }
    for (bool flag = true; flag;) {
      switch (at_ < text_.size() ? text_[at_] : '\0') {
        case '-':
          left_ = true;
          break;
        case '+':
          plus_ = true;
          break;
        case ' ':
          space_ = true;
          break;
        case '#':
          alternate_ = true;
          break;
        case '0':
          zero_ = true;
          break;
        default:
          flag = false;
      }
      if (flag) ++at_;
    }
    width_ = number("width");
    if (width_ < 0) {
      left_ = true;
      width_ = -width_;
    }
    precision_ = -1;
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      precision_ = std::max<int64_t>(0, number("precision"));
    }
    if (at_ < text_.size() && (text_[at_] == 'h' || text_[at_] == 'l' || text_[at_] == 'L')) ++at_;
    const char type = take();
    if (type == '%') {
      out_.append("%", input);
      return;
    }
    const Value value = argument();
    switch (type) {
      case 's':
      case 'r':
      case 'a':
        return string(type, value, input);
      case 'c':
        return character(value, input);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(type, value, input);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(type, value, input);
      default:
        fail(fmt::format("unsupported format character '{}' (0x{:x})", type, static_cast<unsigned>(type)));
    }
  }

  void padded(const TrackedText& text, bool fill_input) {
    const int64_t length = static_cast<int64_t>(count_code_points(text.view()));
    const size_t missing = width_ > length ? static_cast<size_t>(width_ - length) : 0;
    rt_.check_size(out_.size() + text.size() + missing);
    if (!left_) out_.append(std::string(missing, ' '), fill_input);
    out_.append(text);
    if (left_) out_.append(std::string(missing, ' '), fill_input);
  }

  void string(char type, const Value& value, bool input) {
    TrackedText text = type == 's' ? to_text(rt_, value) : repr(rt_, value);
    if (type == 'a') text = ascii_only(text);
    if (format_.markup && !(type == 's' && is_markup(value))) text = escape_html(text);
    if (precision_ >= 0)
      text = text.slice(0, byte_of_code_point(text.view(), static_cast<size_t>(precision_)));
    padded(text, input);
  }

  static TrackedText ascii_only(const TrackedText& text) {
    TrackedText out;
    for (size_t at = 0; at < text.size();) {
      const Utf8Char c = decode_utf8(text.view().substr(at));
      const uint32_t code = c.code;
      const size_t end = at + static_cast<size_t>(c.length);
      if (code < 0x80)
        out.append(text, at, end);
      else if (code < 0x100)
        out.append(fmt::format("\\x{:02x}", code), text.is_input(at));
      else if (code < 0x10000)
        out.append(fmt::format("\\u{:04x}", code), text.is_input(at));
      else
        out.append(fmt::format("\\U{:08x}", code), text.is_input(at));
      at = end;
    }
    return out;
  }

  void character(const Value& value, bool input) {
    TrackedText text;
    if (value.is_string()) {
      if (value.as<String>().length != 1) fail("%c requires int or char");
      text = value.as<String>().text;
    } else {
      if (!value.is_small_integer()) fail("%c requires int or char");
      if (value.as_integer() < 0 || value.as_integer() > 0x10FFFF) fail("%c arg not in range(0x110000)");
      std::string utf8;
      append_utf8(utf8, static_cast<char32_t>(value.as_integer()));
      text.append(utf8, value.from_input());
    }
    padded(text, input);
  }

  /// sign, digits and padding as one text of the number's origin.
  void numeric(const std::string& sign, std::string digits, const Value& value, bool input) {
    const size_t length = sign.size() + digits.size();
    const size_t width = static_cast<size_t>(width_);
    rt_.check_size(out_.size() + length + width);
    if (zero_ && !left_ && width > length) digits.insert(0, width - length, '0');
    TrackedText text;
    text.append(sign + digits, value.from_input());
    padded(text, input);
  }

  std::string sign_of(bool negative) const { return negative ? "-" : (plus_ ? "+" : (space_ ? " " : "")); }

  void integer(char type, const Value& value, bool input) {
    if (value.is_undefined()) fail_undefined(value);
    const bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!value.is_integer() && !(decimal && value.is(Type::real))) {
      fail(fmt::format("%{} format: {}, not {}", type,
                       decimal ? "a real number is required" : "an integer is required", type_name(value)));
    }
    if (value.is(Type::real) && !std::isfinite(value.as_real()))
      fail("cannot convert float infinity or NaN to integer");
    BigInt number = value.is(Type::real) ? BigInt::truncate(value.as_real()) : to_bigint(value);
    const bool negative = number.negative();
    if (negative) number = -number;
    std::string digits = number.to_string(decimal ? 10 : (type == 'o' ? 8 : 16));
    if (decimal && digits.size() > 4300)
      fail("Exceeds the limit (4300 digits) for integer string conversion");
    if (type == 'X') {
      for (char& c : digits) c = c >= 'a' ? static_cast<char>(c - 32) : c;
    }
    if (precision_ > static_cast<int64_t>(digits.size())) {
      rt_.check_size(static_cast<size_t>(precision_));
      digits.insert(0, static_cast<size_t>(precision_) - digits.size(), '0');
    }
    std::string sign = sign_of(negative);
    if (alternate_ && !decimal) sign += std::string("0") + type;
    numeric(sign, digits, value, input);
  }

  void real(char type, const Value& value, bool input) {
    if (value.is_undefined()) fail_undefined(value);
    if (!value.is_number()) fail("must be real number, not " + type_name(value));
    if (precision_ > 100000) fail("precision too large");
    const double number = to_double(value);
    const bool negative = std::signbit(number) && !std::isnan(number);
    numeric(sign_of(negative),
            format_magnitude(number, type, precision_ < 0 ? 6 : static_cast<int>(precision_), alternate_),
            value, input);
  }

  Runtime& rt_;
  const String& format_;
  std::string_view text_;
  const Value& arguments_;
  const std::vector<Value>* items_ = nullptr;
  size_t next_ = 0;
  Value keyed_;
  size_t at_ = 0;
  TrackedText out_;
  // The conversion at hand
  bool left_ = false, plus_ = false, space_ = false, alternate_ = false, zero_ = false;
  int64_t width_ = 0;
  int64_t precision_ = -1;
};

}  // namespace

Value format_printf(Runtime& rt, const Value& format, const Value& arguments) {
  const String& string = format.as<String>();
  rt.work(string.text.size());
  TrackedText out = PrintfFormatter(rt, string, arguments).run();
  rt.work(out.size() * 16);
  return rt.heap.string(std::move(out), string.markup);
}

}  // namespace qwench::jinja
