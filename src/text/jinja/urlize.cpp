#include "text/jinja/urlize.h"

#include <algorithm>
#include <array>

#include "core/utf8.h"
#include "text/jinja/unicode.h"

namespace qwench::jinja {
namespace {

bool is_ascii_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char32_t c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  return std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
}

std::vector<std::u32string> split_at(const std::u32string& text, char32_t separator) {
  std::vector<std::u32string> parts(1);
  for (const char32_t c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// What may follow the host: ":port" and a path, query or fragment without spaces.
bool is_url_rest(std::u32string_view rest) {
  if (!rest.empty() && rest[0] == ':') {
    size_t digits = 1;
    while (digits < rest.size() && is_decimal(rest[digits])) ++digits;
    if (digits == 1 || digits > 6) return false;
    rest.remove_prefix(digits);
  }
  return rest.empty() || rest[0] == '/' || rest[0] == '?' || rest[0] == '#';
}

bool is_ipv4(const std::vector<std::u32string>& labels) {
  return labels.size() == 4 && std::all_of(labels.begin(), labels.end(), [](const std::u32string& label) {
           return !label.empty() && label.size() <= 3 && std::all_of(label.begin(), label.end(), is_decimal);
         });
}

bool is_domain_label(const std::u32string& label) {
  return !label.empty() && std::all_of(label.begin(), label.end(),
                                       [](char32_t c) { return is_word(c) || c == '%' || c == '-'; });
}

bool is_top_level(const std::u32string& label) {
  if (label.size() >= 2 && label.size() <= 63 && std::all_of(label.begin(), label.end(), is_ascii_letter))
    return true;
  const bool idna =
      label.size() >= 6 && label.size() <= 63 && starts_with_ignoring_case(to_utf8(label), "xn--");
  return idna &&
         std::all_of(label.begin() + 4, label.end(), [](char32_t c) { return is_word(c) || c == '%'; });
}

/// "[hhhh:hhhh:...]", in the loose form that the filter accepts; its length, or 0.
size_t ipv6_length(std::u32string_view text) {
  if (text.empty() || text[0] != '[') return 0;
  const size_t close = text.find(U']');
  if (close == std::u32string_view::npos) return 0;
  size_t colons = 0;
  size_t run = 0;
  for (const char32_t c : text.substr(1, close - 1)) {
    if (c == ':') {
      ++colons;
      run = 0;
    } else if (!is_hex(c) || ++run > 4) {
      return 0;
    }
  }
  return colons >= 2 && colons <= 8 ? close + 1 : 0;
}

bool is_http_url(std::string_view text) {
  std::u32string rest = to_utf32(text);
  bool scheme = false;
  bool www = false;
  for (const std::string_view prefix : {"https://", "http://", "www."}) {
    if (!starts_with_ignoring_case(text, prefix)) continue;
    (prefix == "www." ? www : scheme) = true;
    rest = to_utf32(text.substr(prefix.size()));
    break;
  }
  if (std::any_of(rest.begin(), rest.end(), is_space)) return false;
  if (scheme) {
    if (const size_t length = ipv6_length(rest)) return is_url_rest(std::u32string_view(rest).substr(length));
  }
  const size_t host_end = std::min(rest.find_first_of(U":/?#"), rest.size());
  if (!is_url_rest(std::u32string_view(rest).substr(host_end))) return false;
  const auto labels = split_at(rest.substr(0, host_end), U'.');
  if (scheme && is_ipv4(labels)) return true;
  if (scheme || www)
    return is_top_level(labels.back()) && std::all_of(labels.begin(), labels.end() - 1, is_domain_label);
  constexpr std::array tops = {"com", "net", "int", "edu", "gov", "org", "info", "mil"};
  std::string top;
  for (const char32_t c : labels.back()) append_lower(top, c);
  return labels.size() >= 2 && std::find(tops.begin(), tops.end(), top) != tops.end() &&
         std::all_of(labels.begin(), labels.end() - 1, [](const std::u32string& label) {
           return label.size() >= 2 && label.size() <= 63 && is_domain_label(label);
         });
}

bool is_email(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return false;
  const std::u32string domain = to_utf32(text.substr(at + 1));
  const size_t dot = domain.rfind(U'.');
  if (dot == std::u32string::npos || dot == 0 || dot + 1 == domain.size() || !is_word(domain[0]))
    return false;
  const std::u32string local = to_utf32(text.substr(0, at));
  return std::none_of(local.begin(), local.end(), is_space) &&
         std::all_of(domain.begin(), domain.begin() + static_cast<std::ptrdiff_t>(dot),
                     [](char32_t c) { return is_word(c) || c == '.' || c == '-'; }) &&
         std::all_of(domain.begin() + static_cast<std::ptrdiff_t>(dot) + 1, domain.end(), is_word);
}

size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// One word without white space: its brackets and punctuation stay outside of the link.
class Word {
 public:
  Word(const TrackedText& text, size_t begin, size_t end, const UrlizeOptions& options)
      : text_(text), begin_(begin), end_(end), middle_(begin), tail_(end), options_(options) {}

  void append_to(TrackedText& out) {
    find_middle();
    out.append(text_, begin_, middle_);
    append_middle(out);
    out.append(text_, tail_, end_);
  }

 private:
  std::string_view part(size_t begin, size_t end) const { return text_.view().substr(begin, end - begin); }

  void find_middle() {
    while (middle_ < end_) {
      if (part(middle_, end_).starts_with("&lt;"))
        middle_ += 4;
      else if (text_.str()[middle_] == '(' || text_.str()[middle_] == '<')
        ++middle_;
      else
        break;
    }
    while (tail_ > middle_) {
      const std::string_view rest = part(middle_, tail_);
      if (rest.ends_with("&gt;"))
        tail_ -= 4;
      else if (std::string_view(")>.,\n").find(rest.back()) != std::string_view::npos)
        --tail_;
      else
        break;
    }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> brackets = {
        {{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}}};
    for (const auto& [open, close] : brackets) {
      const size_t opened = count_of(part(middle_, tail_), open);
      if (opened <= count_of(part(middle_, tail_), close)) continue;
      for (size_t i = 0; i < opened; ++i) {
        const size_t found = part(tail_, end_).find(close);
        if (found == std::string_view::npos) break;
        tail_ += found + close.size();
      }
    }
  }

  void append_middle(TrackedText& out) {
    const std::string_view middle = part(middle_, tail_);
    if (is_http_url(middle))
      return link(out, middle.starts_with("https://") || middle.starts_with("http://") ? "" : "https://",
                  middle_, true, true);
    if (middle.starts_with("mailto:") && is_email(middle.substr(7)))
      return link(out, "", middle_ + 7, false, false);
    if (middle.find('@') != std::string_view::npos && !middle.starts_with("www.") &&
        !middle.starts_with("@") && middle.find(':') == std::string_view::npos && is_email(middle)) {
      return link(out, "mailto:", middle_, false, false);
    }
    for (const std::string& scheme : options_.extra_schemes) {
      if (middle != scheme && middle.starts_with(scheme)) return link(out, "", middle_, true, false);
    }
    out.append(text_, middle_, tail_);
  }

  void link(TrackedText& out, std::string_view prefix, size_t shown, bool attributes, bool trim) {
    out.append("<a href=\"", false);
    out.append(prefix, false);
    out.append(text_, middle_, tail_);
    out.append("\"", false);
    if (attributes && !options_.rel.empty()) out.append(" rel=\"" + options_.rel + "\"", false);
    if (attributes && !options_.target.empty()) out.append(" target=\"" + options_.target + "\"", false);
    out.append(">", false);
    const std::string_view label = part(shown, tail_);
    if (trim && options_.trim_limit &&
        static_cast<int64_t>(count_code_points(label)) > *options_.trim_limit) {
      const size_t kept =
          byte_of_code_point(label, static_cast<size_t>(std::max<int64_t>(0, *options_.trim_limit)));
      out.append(text_, shown, shown + kept);
      out.append("...", false);
    } else {
      out.append(text_, shown, tail_);
    }
    out.append("</a>", false);
  }

  const TrackedText& text_;
  size_t begin_, end_, middle_, tail_;
  const UrlizeOptions& options_;
};

}  // namespace

bool is_uri_scheme(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon < 2) return false;
  const std::u32string name = to_utf32(text.substr(0, colon));
  const std::string_view slashes = text.substr(colon + 1);
  return name.size() >= 2 && (slashes.empty() || slashes == "/" || slashes == "//") &&
         std::all_of(name.begin(), name.end(),
                     [](char32_t c) { return is_word(c) || c == '.' || c == '+' || c == '-'; });
}

TrackedText urlize(const TrackedText& text, const UrlizeOptions& options) {
  TrackedText out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    bool space = false;
    while (at < text.size()) {
      const Utf8Char c = decode_utf8(text.view().substr(at));
      if (at == begin)
        space = is_space(c.code);
      else if (is_space(c.code) != space)
        break;
      at += static_cast<size_t>(c.length);
    }
    if (space)
      out.append(text, begin, at);
    else
      Word(text, begin, at, options).append_to(out);
  }
  return out;
}

}  // namespace qwench::jinja
