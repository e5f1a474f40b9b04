#include <algorithm>

#include "core/utf8.h"
#include "text/jinja/builtins.h"
#include "text/jinja/text_functions.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

/// Python's pprint.pformat: 80 columns, keys sorted, one level of indentation a bracket.
class PrettyPrinter {
 public:
  explicit PrettyPrinter(Runtime& rt) : rt_(rt) {}

  std::string run(const Value& value) {
    format(value, 0, 0, 0);
    return std::move(out_);
  }

 private:
  static constexpr int64_t kWidth = 80;

  static int64_t width(const std::string& text) { return static_cast<int64_t>(count_code_points(text)); }

  std::vector<Dict::Entry> sorted(const Value& dict) {
    std::vector<Dict::Entry> entries = dict.as<Dict>().entries();
    // Keys that cannot be compared are ordered by their types' names, as pprint does.
    std::stable_sort(entries.begin(), entries.end(), [&](const Dict::Entry& a, const Dict::Entry& b) {
      try {
        return less(rt_, a.key, b.key);
      } catch (const Failure& failure) {
        if (failure.kind == TemplateErrorKind::limit) throw;
        return type_name(a.key) < type_name(b.key);
      }
    });
    return entries;
  }

  /// repr() with sorted keys.
  std::string plain(const Value& value) {
    rt_.step();
    const Runtime::Nesting nesting(rt_);
    std::string text;
    if (value.is(Type::dict)) {
      for (const auto& [key, item] : sorted(value))
        text += (text.empty() ? "" : ", ") + plain(key) + ": " + plain(item);
      text = "{" + text + "}";
    } else if (value.is_sequence()) {
      const bool tuple = value.is(Type::tuple);
      const auto& items = value.as<Sequence>().items;
      for (const Value& item : items) text += (text.empty() ? "" : ", ") + plain(item);
      text = tuple ? "(" + text + (items.size() == 1 ? ",)" : ")") : "[" + text + "]";
    } else {
      text = repr(rt_, value).str();
    }
    rt_.work(text.size());
    rt_.check_size(text.size());
    return text;
  }

  void format(const Value& value, int64_t indent, int64_t allowance, int level) {
    const std::string text = plain(value);
    rt_.check_size(out_.size() + text.size());
    if (width(text) <= kWidth - indent - allowance) {
      out_ += text;
      return;
    }
    const Runtime::Nesting nesting(rt_);
    if (value.is(Type::dict)) return format_dict(value, indent, allowance, level + 1);
    if (value.is_sequence()) return format_items(value, indent, allowance, level + 1);
    if (value.is_string() && !is_markup(value))
      return format_string(value.as<String>(), indent, allowance, level + 1);
    out_ += text;
  }

  void new_line(int64_t indent) { out_ += "\n" + std::string(static_cast<size_t>(indent), ' '); }

  void format_dict(const Value& value, int64_t indent, int64_t allowance, int level) {
    const auto entries = sorted(value);
    out_ += '{';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i != 0) {
        out_ += ',';
        new_line(indent + 1);
      }
      const std::string key = plain(entries[i].key);
      out_ += key + ": ";
      format(entries[i].value, indent + 1 + width(key) + 2, i + 1 == entries.size() ? allowance + 1 : 1,
             level);
    }
    out_ += '}';
  }

  void format_items(const Value& value, int64_t indent, int64_t allowance, int level) {
    const auto& items = value.as<Sequence>().items;
    const bool tuple = value.is(Type::tuple);
    const std::string end = tuple ? (items.size() == 1 ? ",)" : ")") : "]";
    out_ += tuple ? '(' : '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i != 0) {
        out_ += ',';
        new_line(indent + 1);
      }
      format(items[i], indent + 1, i + 1 == items.size() ? allowance + static_cast<int64_t>(end.size()) : 1,
             level);
    }
    out_ += end;
  }

  std::string quoted(std::string_view text) { return repr(rt_, rt_.heap.string(text)).str(); }

  /// A word and the white space after it.
  static size_t word_end(std::string_view line, size_t at) {
    for (const bool space : {false, true}) {
      while (at < line.size()) {
        const Utf8Char c = decode_utf8(line.substr(at));
        if (is_space(c.code) != space) break;
        at += static_cast<size_t>(c.length);
      }
    }
    return at;
  }

  void format_string(const String& string, int64_t indent, int64_t allowance, int level) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    const std::string_view text = string.text.view();
    rt_.work(text.size() * 64);  // each word is quoted anew
    std::vector<std::string> chunks;
    const auto lines = split_lines(rt_, text, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string_view line = text.substr(lines[i].begin, lines[i].end - lines[i].begin);
      const bool last_line = i + 1 == lines.size();
      const std::string whole = quoted(line);
      if (width(whole) <= kWidth - indent - (last_line ? allowance : 0)) {
        chunks.push_back(whole);
        continue;
      }
      std::string current;
      for (size_t at = 0; at < line.size();) {
        const size_t end = word_end(line, at);
        const std::string candidate = current + std::string(line.substr(at, end - at));
        rt_.work(candidate.size() * 4);
        const bool last = last_line && end == line.size();
        if (width(quoted(candidate)) > kWidth - indent - (last ? allowance : 0)) {
          if (!current.empty()) chunks.push_back(quoted(current));
          current = std::string(line.substr(at, end - at));
        } else {
          current = candidate;
        }
        at = end;
      }
      if (!current.empty()) chunks.push_back(quoted(current));
    }
    if (chunks.size() == 1) {
      out_ += chunks[0];
      return;
    }
    if (level == 1) out_ += '(';
    for (size_t i = 0; i < chunks.size(); ++i) {
      if (i != 0) new_line(indent);
      out_ += chunks[i];
      rt_.check_size(out_.size());
    }
    if (level == 1) out_ += ')';
  }

  Runtime& rt_;
  std::string out_;
};

Value pprint_filter(Runtime& rt, Arguments& arguments) {
  const Value value = bind("pprint", arguments, {"value"}, 1)[0];
  // It breaks and re-quotes text: all of it counts as input.
  return rt.heap.string(TrackedText::of_input(PrettyPrinter(rt).run(value)));
}

}  // namespace

void add_pprint_filter(FilterTable& table) { table["pprint"] = pprint_filter; }

}  // namespace qwench::jinja
