#include "text/pre_tokenizer.h"

#include <fmt/format.h>

#include "checkpoint/printable.h"
#include "core/utf8.h"
#include "qwench/error.h"
#include "text/bpe_byte_alphabet.h"
#include "text/pre_tokenizer_scan.h"
#include "text/pre_tokenizer_split.h"
#include "text/tokenizer_fields.h"
#include "text/tokenizer_pattern.h"

namespace qwench {
namespace {

/// Writes each piece anew: append(piece, is_first_of_the_input, out).
template <typename Append>
void rewrite_pieces(PreTokenizedText& text, Append&& append) {
  std::string out;
  out.reserve(text.text.size() + text.pieces.size());
  const bool at_start = text.at_start && !text.pieces.empty() && text.pieces[0].begin == 0;
  for (size_t i = 0; i < text.pieces.size(); ++i) {
    const size_t begin = out.size();
    append(text.piece(text.pieces[i]), i == 0 && at_start, out);
    text.pieces[i] = {begin, out.size()};
  }
  text.storage = std::move(out);
  text.text = text.storage;
  text.at_start = at_start;
}

class Split : public PreTokenizer {
 public:
  Split(TokenizerPattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {
    if (!pattern_.is_literal() && behavior == SplitBehavior::isolated)
      known_ = known_pattern(pattern_.text());
  }
  void apply(PreTokenizedText& text) const override {
    text.buffer.clear();
    std::vector<ByteSpan> matches;
    for (const ByteSpan piece : text.pieces) {
      if (known_) {
        scan_pieces(*known_, text.text, piece, text.buffer);
        continue;
      }
      matches.clear();
      pattern_.find_all(text.piece(piece), matches);
      for (ByteSpan& m : matches) m = {m.begin + piece.begin, m.end + piece.begin};
      cut_piece(piece, matches, behavior_, invert_, text.buffer);
    }
    text.pieces.swap(text.buffer);
  }

 private:
  TokenizerPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
  std::optional<KnownPattern> known_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex, bool maps)
      : prefix_(add_prefix_space), regex_(use_regex), maps_(maps) {}
  void apply(PreTokenizedText& text) const override {
    if (prefix_) {
      rewrite_pieces(text, [](std::string_view piece, bool, std::string& out) {
        if (piece.front() != ' ') out += ' ';
        out += piece;
      });
    }
    if (regex_) {
      text.buffer.clear();
      for (const ByteSpan piece : text.pieces) scan_pieces(KnownPattern::gpt2, text.text, piece, text.buffer);
      text.pieces.swap(text.buffer);
    }
    if (maps_) {
      rewrite_pieces(
          text, [](std::string_view piece, bool, std::string& out) { append_byte_alphabet(out, piece); });
    } else {
      text.bytes_mapped = false;
    }
  }

 private:
  bool prefix_;
  bool regex_;
  bool maps_;
};

class Metaspace : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };
  Metaspace(char32_t replacement, Prepend prepend, bool split) : prepend_(prepend), split_(split) {
    append_utf8(mark_, replacement);
  }
  void apply(PreTokenizedText& text) const override {
    rewrite_pieces(text, [&](std::string_view piece, bool starts_input, std::string& out) {
      const bool marked = piece.front() == ' ' || piece.starts_with(mark_);
      if (!marked && (prepend_ == Prepend::always || (prepend_ == Prepend::first && starts_input)))
        out += mark_;
      for (const char c : piece) {
        if (c == ' ')
          out += mark_;
        else
          out += c;
      }
    });
    if (!split_) return;
    text.buffer.clear();
    std::vector<ByteSpan> matches;
    const TokenizerPattern mark = TokenizerPattern::literal(mark_);
    for (const ByteSpan piece : text.pieces) {
      matches.clear();
      mark.find_all(text.piece(piece), matches);
      for (ByteSpan& m : matches) m = {m.begin + piece.begin, m.end + piece.begin};
      // Each mark is a match of its own and begins a piece.
      cut_piece(piece, matches, SplitBehavior::merged_with_next, false, text.buffer);
    }
    text.pieces.swap(text.buffer);
  }

 private:
  std::string mark_;
  Prepend prepend_;
  bool split_;
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(size_t length) : length_(length) {}
  void apply(PreTokenizedText& text) const override {
    text.buffer.clear();
    for (ByteSpan piece : text.pieces) {
      size_t count = 0;
      for (size_t i = piece.begin; i < piece.end; ++count) {
        if (count == length_) {
          text.buffer.push_back({piece.begin, i});
          piece.begin = i;
          count = 0;
        }
        i += unicode::utf8_length(text.text[i]);
      }
      text.buffer.push_back(piece);
    }
    text.pieces.swap(text.buffer);
  }

 private:
  size_t length_;  // in characters
};

/// A pre-tokenizer that is one function of the text.
template <typename Apply>
class Simple : public PreTokenizer {
 public:
  explicit Simple(Apply function) : apply_(function) {}
  void apply(PreTokenizedText& text) const override { apply_(text); }

 private:
  Apply apply_;
};

template <typename Apply>
std::shared_ptr<const PreTokenizer> simple(Apply function) {
  return std::make_shared<Simple<Apply>>(function);
}

/// Whitespace: \w+|[^\w\s]+, everything else removed.
void split_words(PreTokenizedText& text) {
  const auto& properties = unicode::property_table();
  enum Kind { space, word, other };
  const auto kind_of = [&](char32_t c) {
    const uint16_t p = properties[c];
    return p & unicode::kWord ? word : p & unicode::kWhiteSpace ? space : other;
  };
  text.buffer.clear();
  for (const ByteSpan piece : text.pieces) {
    const char* const begin = text.text.data();
    Kind last = space;
    for (const char* p = begin + piece.begin; p != begin + piece.end;) {
      const auto from = static_cast<size_t>(p - begin);
      const Kind kind = kind_of(unicode::next_char(p));
      const auto to = static_cast<size_t>(p - begin);
      if (kind != space && kind == last)
        text.buffer.back().end = to;
      else if (kind != space)
        text.buffer.push_back({from, to});
      last = kind;
    }
  }
  text.pieces.swap(text.buffer);
}

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::shared_ptr<const PreTokenizer>> steps)
      : steps_(std::move(steps)) {}
  void apply(PreTokenizedText& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::shared_ptr<const PreTokenizer>> steps_;
};

constexpr std::string_view kSupportedPreTokenizers =
    "Split, ByteLevel, Digits, Sequence, Whitespace, WhitespaceSplit, Punctuation, Metaspace, "
    "BertPreTokenizer, "
    "CharDelimiterSplit and FixedLength";

std::shared_ptr<const PreTokenizer> parse_metaspace(const Fields& fields) {
  fields.only({"replacement", "str_rep", "prepend_scheme", "add_prefix_space", "split"});
  const std::u32string mark = to_utf32(fields.text("replacement"));
  if (mark.size() != 1) fields.fail("replacement", "is not one character");
  const std::string scheme =
      fields.text_or("prepend_scheme", fields.flag("add_prefix_space", true) ? "always" : "never");
  Metaspace::Prepend prepend = Metaspace::Prepend::never;
  if (scheme == "always")
    prepend = Metaspace::Prepend::always;
  else if (scheme == "first")
    prepend = Metaspace::Prepend::first;
  else if (scheme != "never")
    fields.fail("prepend_scheme", fmt::format("is {}, expected always, first or never", printable(scheme)));
  return std::make_shared<Metaspace>(mark[0], prepend, fields.flag("split", true));
}

std::shared_ptr<const PreTokenizer> parse(const Json& json, const std::string& where, bool last, int depth) {
  const Fields fields(json, where);
  const std::string type = fields.type();
  if (type == "Sequence") {
    fields.only({"pretokenizers"});
    if (depth > 16) fields.fail("pretokenizers", "are nested more than 16 deep");
    const Json& list = fields.list("pretokenizers");
    std::vector<std::shared_ptr<const PreTokenizer>> steps;
    for (const Json& step : list) {
      const bool final_step = last && steps.size() + 1 == list.size();
      steps.push_back(parse(step, fmt::format("{}[{}]", fields.at("pretokenizers"), steps.size()), final_step,
                            depth + 1));
    }
    return std::make_shared<PreTokenizerSequence>(std::move(steps));
  }
  if (type == "Split") {
    fields.only({"pattern", "behavior", "invert"});
    return std::make_shared<Split>(TokenizerPattern::from_json(fields.get("pattern"), fields.at("pattern")),
                                   split_behavior(fields.text("behavior"), fields.at("behavior")),
                                   fields.flag("invert", false));
  }
  if (type == "ByteLevel") {
    fields.only({"add_prefix_space", "trim_offsets", "use_regex"});
    return std::make_shared<ByteLevel>(fields.flag("add_prefix_space"), fields.flag("use_regex", true),
                                       !last);
  }
  if (type == "Metaspace") return parse_metaspace(fields);
  if (type == "Digits") {
    fields.only({"individual_digits"});
    const auto behavior =
        fields.flag("individual_digits", false) ? SplitBehavior::isolated : SplitBehavior::contiguous;
    return simple([behavior](PreTokenizedText& text) {
      split_at_characters(text, behavior, [](char32_t, uint16_t p) { return (p & unicode::kNumeric) != 0; });
    });
  }
  if (type == "Punctuation") {
    fields.only({"behavior"});
    const auto behavior = split_behavior(fields.text_or("behavior", "Isolated"), fields.at("behavior"));
    return simple([behavior](PreTokenizedText& text) {
      split_at_characters(text, behavior,
                          [](char32_t, uint16_t p) { return (p & unicode::kPunctuation) != 0; });
    });
  }
  if (type == "CharDelimiterSplit") {
    fields.only({"delimiter"});
    const std::u32string delimiter = to_utf32(fields.text("delimiter"));
    if (delimiter.size() != 1) fields.fail("delimiter", "is not one character");
    return simple([c = delimiter[0]](PreTokenizedText& text) {
      split_at_characters(text, SplitBehavior::removed, [c](char32_t x, uint16_t) { return x == c; });
    });
  }
  if (type == "FixedLength") {
    fields.only({"length"});
    return std::make_shared<FixedLength>(static_cast<size_t>(fields.number("length", 1, 1 << 30)));
  }
  fields.only({});
  const auto split_white_space = [](PreTokenizedText& text) {
    split_at_characters(text, SplitBehavior::removed,
                        [](char32_t, uint16_t p) { return (p & unicode::kWhiteSpace) != 0; });
  };
  if (type == "Whitespace") return simple(split_words);
  if (type == "WhitespaceSplit") return simple(split_white_space);
  if (type == "BertPreTokenizer") {
    return simple([split_white_space](PreTokenizedText& text) {
      split_white_space(text);
      split_at_characters(text, SplitBehavior::isolated,
                          [](char32_t, uint16_t p) { return (p & unicode::kPunctuation) != 0; });
    });
  }
  fields.unknown_type("pre-tokenizer", kSupportedPreTokenizers);
}

}  // namespace

void PreTokenizedText::reset(std::string_view whole, bool starts_the_input) {
  text = whole;
  pieces.clear();
  if (!whole.empty()) pieces.push_back({0, whole.size()});
  at_start = starts_the_input;
  bytes_mapped = true;
}

std::shared_ptr<const PreTokenizer> PreTokenizer::from_json(const Json& json, const std::string& where,
                                                            bool model_takes_bytes) {
  return json.is_null() ? nullptr : parse(json, where, model_takes_bytes, 0);
}

}  // namespace qwench
