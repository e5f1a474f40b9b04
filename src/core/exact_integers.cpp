#include "core/exact_integers.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/json.h"
#include "qwench/error.h"

namespace qwench {
namespace {

class Watcher : public nlohmann::json_sax<Json> {
 public:
  Watcher(const std::string& what, const std::vector<std::string>& fields) : what_(what), fields_(fields) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool start_array(size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

  bool key(string_t& key) override {
    if (keys_.size() == 1 && !fields_.empty())
      looks_ = std::find(fields_.begin(), fields_.end(), key) != fields_.end();
    keys_.back() = key;
    return true;
  }

  bool number_float(number_float_t value, const string_t& text) override {
    if (!looks_ || text.find_first_of(".eE") != std::string::npos) return true;
    if (fmt::format("{:.0f}", value) == text) return true;
    const std::string key = keys_.empty() ? "" : keys_.back();
    const bool negative = text[0] == '-';
    const bool far = negative ? key == "minimum" || key == "exclusiveMinimum"
                              : key == "maximum" || key == "exclusiveMaximum";
    const auto is_annotation = [](const std::string& one) {
      return one == "default" || one == "examples" || one == "example";
    };
    if (far || std::any_of(keys_.begin(), keys_.end(), is_annotation)) return true;
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: {}: the whole number {} needs more than 64 bits, which is not supported; give one "
                    "of at most 64 bits, or a string",
                    what_, key, text));
  }

 private:
  bool open() {
    constexpr size_t kDeepest = 500;
    if (keys_.size() > kDeepest) return false;
    keys_.push_back(keys_.empty() ? "" : keys_.back());  // an array's items are of its keyword
    return true;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }

  const std::string& what_;
  const std::vector<std::string>& fields_;
  bool looks_ = true;
  std::vector<std::string> keys_;  // of each open container the last one
};

/// Whether so many digits stand in a row that a number may need more than 64 bits.
bool has_long_number(std::string_view text) {
  constexpr size_t kShortest = 19;
  size_t digits = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    if (digits >= kShortest) return true;
  }
  return false;
}

}  // namespace

void refuse_rounded_integers(std::string_view text, const std::string& what,
                             const std::vector<std::string>& fields) {
  if (!has_long_number(text)) return;
  Watcher watcher(what, fields);
  Json::sax_parse(text, &watcher);
}

}  // namespace qwench
