#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/utf8.h"
#include "text/jinja/builtins.h"

namespace qwench::jinja {
namespace {

/// json.dumps with the arguments that chat templates' tojson has.
class JsonWriter {
 public:
  JsonWriter(Runtime& rt, const std::vector<Value>& arguments) : rt_(rt) {
    ascii_ = truthy(rt, arguments[1]);
    sort_ = truthy(rt, arguments[4]);
    const Value& indent = arguments[2];
    indented_ = !indent.is_missing() && !indent.is_none();
    if (indent.is_string()) {
      indent_ = indent.as<String>().text;
    } else if (indent.is_integer()) {
      const int64_t width = std::max<int64_t>(0, to_index("tojson", indent));
      rt.check_size(static_cast<size_t>(width));
      indent_ = TrackedText::of_template(std::string(static_cast<size_t>(width), ' '));
    } else if (indented_) {
      wrong_indent_ = indent;  // does no harm to a string
    }
    item_separator_ = TrackedText::of_template(indented_ ? "," : ", ");
    key_separator_ = TrackedText::of_template(": ");
    const Value& separators = arguments[3];
    if (!separators.is_missing() && !separators.is_none()) {
      const std::vector<Value> both = to_vector(rt, separators);
      if (both.size() != 2) fail("separators must be a pair of strings");
      item_separator_ = to_string_argument("tojson", both[0]).text;
      key_separator_ = to_string_argument("tojson", both[1]).text;
    }
  }

  TrackedText run(const Value& value) {
    if (wrong_indent_.is_undefined() && !value.is_string()) fail_undefined(wrong_indent_);
    if (!wrong_indent_.is_missing() && !value.is_string())
      fail_type("tojson(indent)", "an integer or a string", wrong_indent_);
    write(value, 0);
    rt_.check_size(out_.size());
    return std::move(out_);
  }

 private:
  void write(const Value& value, size_t depth) {
    rt_.step();
    rt_.check_size(out_.size());
    switch (value.type()) {
      case Type::none:
        return out_.append("null", value.from_input());
      case Type::boolean:
        return out_.append(value.as_integer() != 0 ? "true" : "false", value.from_input());
      case Type::integer:
      case Type::big_integer:
        return out_.append(repr(rt_, value));
      case Type::real:
        return out_.append(real(value.as_real()), value.from_input());
      case Type::string:
        return write_string(value.as<String>().text);
      case Type::list:
      case Type::tuple: {
        const Runtime::Nesting nesting(rt_);
        return write_list(value, depth);
      }
      case Type::dict: {
        const Runtime::Nesting nesting(rt_);
        return write_dict(value, depth);
      }
      default:
        fail("Object of type " + type_name(value) + " is not JSON serializable");
    }
  }

  static std::string real(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return real_repr(value);
  }

  void write_string(const TrackedText& text) {
    rt_.work(text.size());
    const bool input = text.has_input();
    const std::string_view view = text.view();
    size_t copied = 0;
    out_.append("\"", input);
    for (size_t at = 0; at < view.size();) {
      const unsigned char byte = static_cast<unsigned char>(view[at]);
      size_t next = at + 1;
      std::string escaped;
      switch (byte) {
        case '"':
          escaped = "\\\"";
          break;
        case '\\':
          escaped = "\\\\";
          break;
        case '\n':
          escaped = "\\n";
          break;
        case '\r':
          escaped = "\\r";
          break;
        case '\t':
          escaped = "\\t";
          break;
        case '\f':
          escaped = "\\f";
          break;
        case '\b':
          escaped = "\\b";
          break;
        default:
          if (byte < 0x20 || (byte == 0x7F && ascii_)) {
            escaped = fmt::format("\\u{:04x}", byte);
          } else if (byte >= 0x80 && ascii_) {
            const Utf8Char c = decode_utf8(view.substr(at));
            next = at + static_cast<size_t>(c.length);
            const uint32_t code = c.code;
            escaped = code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                     : fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10),
                                                   0xDC00 + (code & 0x3FF));
          }
      }
      if (!escaped.empty()) {
        out_.append(text, copied, at);
        out_.append(escaped, text.is_input(at));
        copied = next;
      }
      at = next;
    }
    out_.append(text, copied, view.size());
    out_.append("\"", input);
    rt_.check_size(out_.size());
  }

  void new_line(size_t depth) {
    if (!indented_) return;
    out_.append("\n", false);
    for (size_t i = 0; i < depth; ++i) out_.append(indent_);
    rt_.check_size(out_.size());
  }

  void write_list(const Value& value, size_t depth) {
    const auto& items = value.as<Sequence>().items;
    const bool input = value.from_input();
    if (items.empty()) return out_.append("[]", input);
    out_.append("[", input);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) out_.append(item_separator_);
      new_line(depth + 1);
      write(items[i], depth + 1);
    }
    new_line(depth);
    out_.append("]", input);
  }

  void write_dict(const Value& value, size_t depth) {
    const bool input = value.from_input();
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : value.as<Dict>().entries()) entries.push_back(&entry);
    if (entries.empty()) return out_.append("{}", input);
    if (sort_) {
      std::stable_sort(entries.begin(), entries.end(),
                       [&](const auto* a, const auto* b) { return less(rt_, a->key, b->key); });
    }
    out_.append("{", input);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) out_.append(item_separator_);
      new_line(depth + 1);
      write_key(entries[i]->key);
      out_.append(key_separator_);
      write(entries[i]->value, depth + 1);
    }
    new_line(depth);
    out_.append("}", input);
  }

  void write_key(const Value& key) {
    switch (key.type()) {
      case Type::string:
        return write_string(key.as<String>().text);
      case Type::none:
      case Type::boolean:
      case Type::integer:
      case Type::big_integer:
      case Type::real:
        out_.append("\"", key.from_input());
        write(key, 0);
        return out_.append("\"", key.from_input());
      default:
        fail("keys must be str, int, float, bool or None, not " + type_name(key));
    }
  }

  Runtime& rt_;
  bool ascii_ = false, sort_ = false, indented_ = false;
  TrackedText indent_, item_separator_, key_separator_;
  Value wrong_indent_;
  TrackedText out_;
};

Value tojson_filter(Runtime& rt, Arguments& arguments) {
  const auto bound = bind("tojson", arguments, {"x", "ensure_ascii", "indent", "separators", "sort_keys"}, 1);
  return rt.heap.string(JsonWriter(rt, bound).run(bound[0]));
}

}  // namespace

void add_json_filter(FilterTable& table) { table["tojson"] = tojson_filter; }

}  // namespace qwench::jinja
