#include "text/normalizer.h"

#include <algorithm>

#include "core/utf8.h"
#include "text/bpe_byte_alphabet.h"
#include "text/tokenizer_fields.h"
#include "text/tokenizer_pattern.h"
#include "text/unicode_classes.h"
#include "text/unicode_normalization.h"

namespace qwench {
namespace {

/// Writes the next version of a text, part by part, and carries the provenance along.
class Rewriter {
 public:
  explicit Rewriter(NormalizedText& text) : text_(text), follows_(!text.trusted.empty()) {
    out_.reserve(text.text.size() + 16);
  }

  std::string_view part(size_t begin, size_t end) const {
    return std::string_view(text_.text).substr(begin, end - begin);
  }

  void copy(size_t begin, size_t end) {
    out_ += part(begin, end);
    if (follows_) {
      const auto first = text_.trusted.begin();
      trusted_.insert(trusted_.end(), first + static_cast<ptrdiff_t>(begin),
                      first + static_cast<ptrdiff_t>(end));
    }
  }
  /// `by` in place of [begin, end): trusted when all of that is. An insertion is the tokenizer's own.
  void replace(size_t begin, size_t end, std::string_view by) {
    if (begin == 0 && end > 0 && by.empty()) text_.at_start = false;
    out_ += by;
    if (follows_) {
      const auto first = text_.trusted.begin();
      const bool all = std::all_of(first + static_cast<ptrdiff_t>(begin), first + static_cast<ptrdiff_t>(end),
                                   [](uint8_t t) { return t != 0; });
      trusted_.insert(trusted_.end(), by.size(), all ? 1 : 0);
    }
  }
  void finish() {
    text_.text = std::move(out_);
    text_.trusted = std::move(trusted_);
  }

 private:
  NormalizedText& text_;
  bool follows_;
  std::string out_;
  std::vector<uint8_t> trusted_;
};

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(unicode::NormalizationForm form) : form_(form) {}

  bool leaves_as_is(std::string_view text) const override {
    return unicode::next_unstable_part(form_, text, 0).begin == text.size();
  }
  void apply(NormalizedText& text) const override {
    Rewriter out(text);
    size_t done = 0;
    std::string changed;
    for (;;) {
      const ByteSpan part = unicode::next_unstable_part(form_, text.text, done);
      out.copy(done, part.begin);
      if (part.begin == text.text.size()) break;
      changed.clear();
      unicode::append_normalized(form_, out.part(part.begin, part.end), changed);
      if (changed == out.part(part.begin, part.end))
        out.copy(part.begin, part.end);
      else
        out.replace(part.begin, part.end, changed);
      done = part.end;
    }
    out.finish();
  }

 private:
  unicode::NormalizationForm form_;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::shared_ptr<const Normalizer>> steps)
      : steps_(std::move(steps)) {}
  bool leaves_as_is(std::string_view text) const override {
    return std::all_of(steps_.begin(), steps_.end(), [&](const auto& s) { return s->leaves_as_is(text); });
  }
  void apply(NormalizedText& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::shared_ptr<const Normalizer>> steps_;
};

class Replace : public Normalizer {
 public:
  Replace(TokenizerPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  bool leaves_as_is(std::string_view text) const override {
    return pattern_.is_literal() && text.find(pattern_.text()) == std::string_view::npos;
  }
  void apply(NormalizedText& text) const override {
    std::vector<ByteSpan> matches;
    if (text.text.empty()) return;
    pattern_.find_all(text.text, matches);
    if (matches.empty()) return;
    Rewriter out(text);
    size_t done = 0;
    for (const ByteSpan m : matches) {
      out.copy(done, m.begin);
      out.replace(m.begin, m.end, content_);
      done = m.end;
    }
    out.copy(done, text.text.size());
    out.finish();
  }

 private:
  TokenizerPattern pattern_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : prepended_(std::move(text)) {}
  bool leaves_as_is(std::string_view text) const override { return text.empty() || prepended_.empty(); }
  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    Rewriter out(text);
    out.replace(0, 0, prepended_);
    out.copy(0, text.text.size());
    out.finish();
  }

 private:
  std::string prepended_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(NormalizedText& text) const override {
    const auto& properties = unicode::property_table();
    const char* const begin = text.text.data();
    const char* const end = begin + text.text.size();
    const char* first = begin;
    for (const char* p = begin; left_ && p != end; first = p) {
      if (!(properties[unicode::next_char(p)] & unicode::kWhiteSpace)) break;
    }
    const char* last = end;
    while (right_ && last != first) {
      const char* p = last - 1;
      while ((static_cast<uint8_t>(*p) & 0xC0) == 0x80) --p;
      const char* start = p;
      if (!(properties[unicode::next_char(p)] & unicode::kWhiteSpace)) break;
      last = start;
    }
    if (first == begin && last == end) return;
    Rewriter out(text);
    if (first != begin) out.replace(0, static_cast<size_t>(first - begin), "");
    out.copy(static_cast<size_t>(first - begin), static_cast<size_t>(last - begin));
    out.finish();
  }

 private:
  bool left_;
  bool right_;
};

/// A normalizer that looks at one character at a time: append(c, out) writes what becomes of it.
template <typename Append>
class ByCharacter : public Normalizer {
 public:
  explicit ByCharacter(Append append) : append_(append) {}
  void apply(NormalizedText& text) const override {
    Rewriter out(text);
    std::string by;
    const char* const begin = text.text.data();
    for (const char* p = begin; p != begin + text.text.size();) {
      const auto from = static_cast<size_t>(p - begin);
      by.clear();
      append_(unicode::next_char(p), by);
      out.replace(from, static_cast<size_t>(p - begin), by);
    }
    out.finish();
  }

 private:
  Append append_;
};

template <typename Append>
std::shared_ptr<const Normalizer> by_character(Append append) {
  return std::make_shared<ByCharacter<Append>>(append);
}

/// Nmt (the rules of SentencePiece's nmt_nfkc without NFKC): controls go, odd white space becomes a space.
void append_nmt(char32_t c, std::string& out) {
  const bool removed = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
                       c == 0x8F || c == 0x9F;
  if (removed) return;
  const bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
                     (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                     c == 0xFEFF || c == 0xFFFD;
  append_utf8(out, space ? U' ' : c);
}

constexpr std::string_view kSupportedNormalizers =
    "NFC, NFD, NFKC, NFKD, Sequence, Replace, Prepend, Lowercase, Strip, StripAccents, Nmt and ByteLevel";

std::shared_ptr<const Normalizer> parse(const Json& json, const std::string& where, int depth) {
  const Fields fields(json, where);
  const std::string type = fields.type();
  using unicode::NormalizationForm;
  const auto form = [&](NormalizationForm f) {
    fields.only({});
    return std::make_shared<UnicodeForm>(f);
  };
  if (type == "NFC") return form(NormalizationForm::nfc);
  if (type == "NFD") return form(NormalizationForm::nfd);
  if (type == "NFKC") return form(NormalizationForm::nfkc);
  if (type == "NFKD") return form(NormalizationForm::nfkd);
  if (type == "Sequence") {
    fields.only({"normalizers"});
    if (depth > 16) fields.fail("normalizers", "are nested more than 16 deep");
    std::vector<std::shared_ptr<const Normalizer>> steps;
    for (const Json& step : fields.list("normalizers")) {
      steps.push_back(
          parse(step, fields.at("normalizers") + "[" + std::to_string(steps.size()) + "]", depth + 1));
    }
    return std::make_shared<NormalizerSequence>(std::move(steps));
  }
  if (type == "Replace") {
    fields.only({"pattern", "content"});
    return std::make_shared<Replace>(TokenizerPattern::from_json(fields.get("pattern"), fields.at("pattern")),
                                     fields.text("content"));
  }
  if (type == "Prepend") {
    fields.only({"prepend"});
    return std::make_shared<Prepend>(fields.text("prepend"));
  }
  if (type == "Strip") {
    fields.only({"strip_left", "strip_right"});
    return std::make_shared<Strip>(fields.flag("strip_left"), fields.flag("strip_right"));
  }
  fields.only({"add_prefix_space", "trim_offsets", "use_regex"});
  if (type == "Lowercase")
    return by_character([](char32_t c, std::string& out) { unicode::append_lowercase(out, c); });
  if (type == "StripAccents") {
    return by_character([](char32_t c, std::string& out) {
      if (!(unicode::property_table()[c] & unicode::kNonspacingMark)) append_utf8(out, c);
    });
  }
  if (type == "Nmt") return by_character([](char32_t c, std::string& out) { append_nmt(c, out); });
  if (type == "ByteLevel") {
    return by_character([](char32_t c, std::string& out) {
      std::string bytes;
      append_utf8(bytes, c);
      append_byte_alphabet(out, bytes);
    });
  }
  fields.unknown_type("normalizer", kSupportedNormalizers);
}

}  // namespace

std::string Normalizer::normalized(std::string_view text) const {
  NormalizedText normalized{std::string(text), {}, true};
  apply(normalized);
  return std::move(normalized.text);
}

std::shared_ptr<const Normalizer> Normalizer::from_json(const Json& json, const std::string& where) {
  return json.is_null() ? nullptr : parse(json, where, 0);
}

}  // namespace qwench
