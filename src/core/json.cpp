#include "core/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/large_integers.h"
#include "core/utf8.h"
#include "qwench/error.h"

namespace qwench {
namespace {

/// Builds the tree from the parser's events. The library's own builder looks each new key up among all before
/// it: a hundred thousand keys in one object, a megabyte, would take minutes.
class Builder : public nlohmann::json_sax<Json> {
 public:
  /// `exact`: integers beyond 64 bits are kept as they are.
  Builder(const std::string& what, int max_depth, bool exact, SameKeys same_keys)
      : what_(what), max_depth_(max_depth), exact_(exact), same_keys_(same_keys) {}

  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    const bool integer = text.find_first_of(".eE") == std::string::npos;
    if (!integer || !exact_) return put(value);
    return put(Json::binary(std::vector<uint8_t>(text.begin(), text.end())));
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    Container& container = open_.back();
    Members& members = container.value->get_ref<Json::object_t&>();
    const auto [found, is_new] = container.places.emplace(key, members.size());
    if (is_new) members.emplace_back(key, nullptr);
    if (!is_new && same_keys_ == SameKeys::are_errors) throw RepeatedKey(what_, place_of(key));
    next_ = &members[found->second].second;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int kNumberOutOfRange = 406;
    throw Error(ErrorKind::malformed,
                error.id == kNumberOutOfRange
                    ? fmt::format("{}: a number out of range at byte {}", what_, position)
                    : fmt::format("{}: not valid JSON at byte {}", what_, position));
  }

 private:
  using Members =
      std::vector<std::pair<const std::string, Json>>;  // what the library's ordered map is made of

  struct Container {
    Json* value;
    std::unordered_map<std::string, size_t> places;  // of an object's keys
  };

  /// "messages[0].role": where a key of the innermost object stands.
  std::string place_of(const std::string& key) const {
    std::string place;
    for (const Container& container : open_) {
      if (container.value->is_array()) {
        place += fmt::format("[{}]", container.value->size() - 1);
      } else {
        const bool innermost = &container == &open_.back();
        const std::string& name =
            innermost ? key : container.value->get_ref<const Json::object_t&>().back().first;
        constexpr size_t kLongest = 60;
        if (!place.empty()) place += '.';
        place += name.size() <= kLongest ? name : to_valid_utf8(name.substr(0, kLongest)) + "...";
      }
    }
    return place;
  }

  /// Where the value that comes next belongs.
  template <typename T>
  Json* place(T&& value) {
    if (open_.empty()) {
      root_ = std::forward<T>(value);
      return &root_;
    }
    Json& container = *open_.back().value;
    if (container.is_array()) {
      container.push_back(std::forward<T>(value));
      return &container.back();
    }
    *next_ = std::forward<T>(value);
    return next_;
  }

  template <typename T>
  bool put(T&& value) {
    place(std::forward<T>(value));
    return true;
  }

  bool open(Json container) {
    if (static_cast<int>(open_.size()) >= max_depth_) {
      throw Error(ErrorKind::malformed, fmt::format("{}: JSON nested more than {} deep", what_, max_depth_));
    }
    Json* value = place(std::move(container));
    open_.push_back({value, {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& what_;
  int max_depth_;
  bool exact_;
  SameKeys same_keys_;
  Json root_;
  std::vector<Container> open_;  // the values on the way to the current one stay in place while it grows
  Json* next_ = nullptr;
};

Json parse(std::string_view text, const std::string& what, int max_depth, bool exact, SameKeys same_keys) {
  // To the library a zero byte is the end of the text.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error(ErrorKind::malformed, fmt::format("{}: not valid JSON at byte {}", what, zero + 1));
  Builder builder(what, max_depth, exact, same_keys);
  Json::sax_parse(text, &builder);  // throws where it fails
  return builder.take();
}

void write_line(const Json& value, std::string& out) {
  if (const auto digits = large_integer(value)) {
    out += *digits;
  } else if (value.is_object()) {
    out += '{';
    for (const auto& [key, item] : value.items()) {
      if (out.back() != '{') out += ',';
      out += json_line(Json(key)) + ':';
      write_line(item, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const Json& item : value) {
      if (&item != &value.front()) out += ',';
      write_line(item, out);
    }
    out += ']';
  } else {
    out += json_line(value);
  }
}

}  // namespace

RepeatedKey::RepeatedKey(const std::string& what, const std::string& place)
    : Error(ErrorKind::malformed, fmt::format("{}: {}: an object has this key twice", what, place)),
      place_(place) {}

std::optional<std::string> large_integer(const Json& value) {
  if (!value.is_binary()) return std::nullopt;
  const auto& digits = value.get_binary();
  return std::string(digits.begin(), digits.end());
}

const char* json_type(const Json& value) { return value.is_binary() ? "number" : value.type_name(); }

bool has_large_integers(const Json& value) {
  if (!value.is_structured()) return value.is_binary();
  return std::any_of(value.begin(), value.end(), [](const Json& item) { return has_large_integers(item); });
}

Json with_doubles(const Json& value) {
  if (!has_large_integers(value)) return value;
  if (const auto digits = large_integer(value)) return std::stod(*digits);
  Json copy = value;
  for (Json& item : copy) item = with_doubles(item);
  return copy;
}

std::string json_line(const Json& value) {
  if (!has_large_integers(value)) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string line;
  write_line(value, line);
  return line;
}

Json parse_json(std::string_view text, const std::string& what, int max_depth) {
  return parse(text, what, max_depth, false, SameKeys::last_counts);
}

Json parse_json_exactly(std::string_view text, const std::string& what, int max_depth, SameKeys same_keys) {
  return parse(text, what, max_depth, true, same_keys);
}

}  // namespace qwench
