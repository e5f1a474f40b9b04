#include "text/decoder_steps.h"

#include <algorithm>

#include "core/utf8.h"
#include "text/bpe_byte_alphabet.h"

namespace qwench::decoder {
namespace {

/// A step that needs whole tokens.
class WholeToken : public DecoderStep {
 public:
  using DecoderStep::DecoderStep;
  void chunk(std::string_view text) override { token_ += text; }
  void end_token() override {
    const std::string token = std::move(token_);
    token_.clear();
    take(token);
  }

 protected:
  virtual void take(const std::string& token) = 0;
  void pass(std::string_view token) {
    next_->chunk(token);
    next_->end_token();
  }

 private:
  std::string token_;
};

class ByteLevel : public WholeToken {
 public:
  using WholeToken::WholeToken;
  void finish() override {
    next_->chunk(to_valid_utf8(bytes_));
    next_->end_token();
    next_->finish();
  }

 protected:
  void take(const std::string& token) override {
    if (auto bytes = from_byte_alphabet(token))
      bytes_ += *bytes;
    else
      bytes_ += token;
    const size_t whole = bytes_.size() - held_back();
    next_->chunk(to_valid_utf8(std::string_view(bytes_).substr(0, whole)));
    bytes_.erase(0, whole);
  }

 private:
  /// Bytes at the end that wait for more. ED A0 to ED BF, which begin an encoded surrogate, can become no
  /// character, but the reference stream keeps them together with their third byte.
  size_t held_back() const {
    const std::string_view end =
        std::string_view(bytes_).substr(bytes_.size() - std::min<size_t>(2, bytes_.size()));
    if (end.size() == 2 && end[0] == '\xED' && static_cast<uint8_t>(end[1]) >= 0xA0 &&
        static_cast<uint8_t>(end[1]) <= 0xBF)
      return 2;
    return static_cast<size_t>(incomplete_utf8_suffix(bytes_));
  }

  std::string bytes_;  // the unfinished beginning of a character
};

class ByteFallback : public WholeToken {
 public:
  using WholeToken::WholeToken;
  void finish() override {
    release();
    next_->finish();
  }

 protected:
  void take(const std::string& token) override {
    const int byte = byte_of(token);
    if (byte >= 0) {
      bytes_.push_back(static_cast<char>(byte));
      return;
    }
    release();
    pass(token);
  }

 private:
  static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }
  static int byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    if (token[3] == '+') return hex(token[4]);  // the reference's number parser takes a sign
    const int high = hex(token[3]);
    const int low = hex(token[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
  }
  void release() {
    if (bytes_.empty()) return;
    if (is_valid_utf8(bytes_)) {
      pass(bytes_);
    } else {
      for (size_t i = 0; i < bytes_.size(); ++i) pass("\xEF\xBF\xBD");
    }
    bytes_.clear();
  }

  std::string bytes_;
};

class Join : public DecoderStep {
 public:
  Join(std::string between, Sink next) : DecoderStep(std::move(next)), between_(std::move(between)) {}
  void chunk(std::string_view text) override {
    begin();
    next_->chunk(text);
  }
  void end_token() override {
    begin();
    inside_ = false;
  }
  void finish() override {
    next_->end_token();
    next_->finish();
  }

 private:
  void begin() {
    if (inside_) return;
    if (any_ && !between_.empty()) next_->chunk(between_);
    inside_ = any_ = true;
  }

  std::string between_;
  bool inside_ = false;
  bool any_ = false;
};

class Replace : public DecoderStep {
 public:
  Replace(TokenizerPattern pattern, std::string by, Sink next)
      : DecoderStep(std::move(next)), pattern_(std::move(pattern)), by_(std::move(by)) {}
  void chunk(std::string_view text) override {
    held_ += text;
    // The end of a fused text may be the beginning of a match; a regular expression needs all of it.
    if (pattern_.is_literal()) release(unfinished());
  }
  void end_token() override {
    release(0);
    next_->end_token();
  }

 private:
  /// Bytes at the end that begin the literal.
  size_t unfinished() const {
    const std::string& literal = pattern_.text();
    for (size_t n = std::min(literal.size() - 1, held_.size()); n > 0; --n) {
      if (held_.compare(held_.size() - n, n, literal, 0, n) == 0) return n;
    }
    return 0;
  }
  void release(size_t keep) {
    std::vector<ByteSpan> matches;
    if (!held_.empty()) pattern_.find_all(held_, matches);
    std::string out;
    size_t done = 0;
    for (const ByteSpan m : matches) {
      out.append(held_, done, m.begin - done);
      out += by_;
      done = m.end;
    }
    const size_t end = std::max(done, held_.size() - std::min(keep, held_.size()));
    out.append(held_, done, end - done);
    held_.erase(0, end);
    next_->chunk(out);
  }

  TokenizerPattern pattern_;
  std::string by_;
  std::string held_;
};

class Strip : public DecoderStep {
 public:
  Strip(char32_t what, size_t start, size_t stop, Sink next)
      : DecoderStep(std::move(next)), start_(start), stop_(stop) {
    append_utf8(what_, what);
  }
  void chunk(std::string_view text) override {
    while (at_start_ && stripped_ < start_ && text.starts_with(what_)) {
      text.remove_prefix(what_.size());
      ++stripped_;
    }
    if (text.empty()) return;
    at_start_ = false;
    held_ += text;
    size_t keep = 0;  // these may yet turn out to be the token's end
    for (size_t n = 0; n < stop_ && std::string_view(held_).substr(0, held_.size() - keep).ends_with(what_);
         ++n) {
      keep += what_.size();
    }
    next_->chunk(std::string_view(held_).substr(0, held_.size() - keep));
    held_.erase(0, held_.size() - keep);
  }
  void end_token() override {
    held_.clear();
    at_start_ = true;
    stripped_ = 0;
    next_->end_token();
  }

 private:
  std::string what_;
  size_t start_;
  size_t stop_;
  bool at_start_ = true;
  size_t stripped_ = 0;
  std::string held_;
};

class Metaspace : public DecoderStep {
 public:
  Metaspace(char32_t mark, bool drops_first, Sink next) : DecoderStep(std::move(next)), first_(drops_first) {
    append_utf8(mark_, mark);
  }
  void chunk(std::string_view text) override {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      if (text.substr(i).starts_with(mark_)) {
        if (!first_) out += ' ';
        i += mark_.size();
      } else {
        out += text[i++];
      }
    }
    next_->chunk(out);
  }
  void end_token() override {
    first_ = false;
    next_->end_token();
  }

 private:
  std::string mark_;
  bool first_;
};

class WordSuffix : public WholeToken {
 public:
  WordSuffix(std::string suffix, Sink next) : WholeToken(std::move(next)), suffix_(std::move(suffix)) {}
  void finish() override {
    if (waiting_) put(last_, "");
    next_->finish();
  }

 protected:
  void take(const std::string& token) override {
    if (waiting_) put(last_, " ");
    last_ = token;
    waiting_ = true;
  }

 private:
  void put(const std::string& token, std::string_view by) {
    std::string out;
    size_t done = 0;
    for (size_t i; !suffix_.empty() && (i = token.find(suffix_, done)) != std::string::npos;
         done = i + suffix_.size()) {
      out.append(token, done, i - done);
      out += by;
    }
    out.append(token, done);
    pass(out);
  }

  std::string suffix_;
  std::string last_;  // whether it is the last one shows only later
  bool waiting_ = false;
};

}  // namespace

Sink byte_level(Sink next) { return std::make_unique<ByteLevel>(std::move(next)); }
Sink byte_fallback(Sink next) { return std::make_unique<ByteFallback>(std::move(next)); }
Sink fuse(Sink next) { return join("", std::move(next)); }
Sink join(std::string between, Sink next) {
  return std::make_unique<Join>(std::move(between), std::move(next));
}
Sink replace(TokenizerPattern pattern, std::string by, Sink next) {
  return std::make_unique<Replace>(std::move(pattern), std::move(by), std::move(next));
}
Sink strip(char32_t what, size_t start, size_t stop, Sink next) {
  return std::make_unique<Strip>(what, start, stop, std::move(next));
}
Sink metaspace(char32_t mark, bool drops_first, Sink next) {
  return std::make_unique<Metaspace>(mark, drops_first, std::move(next));
}
Sink word_suffix(std::string suffix, Sink next) {
  return std::make_unique<WordSuffix>(std::move(suffix), std::move(next));
}

}  // namespace qwench::decoder
