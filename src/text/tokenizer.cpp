#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "core/mapped_file.h"
#include "core/utf8.h"
#include "qwench/error.h"
#include "text/bpe_piece_cache.h"
#include "text/decoder.h"
#include "text/detokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"
#include "text/unicode_classes.h"

namespace qwench {
namespace {

constexpr size_t kMaxText = size_t{1} << 31;  // bytes; places in a text are kept in 32 bits

/// A text made well-formed, and its trusted spans moved along. Returns whether anything had to change.
bool repair_utf8(std::string_view text, std::span<const ByteSpan> trusted, std::string& repaired,
                 std::vector<ByteSpan>& spans) {
  const size_t ascii = unicode::ascii_prefix(text);
  if (ascii == text.size() || is_valid_utf8(text.substr(ascii))) return false;
  std::vector<uint32_t> place(text.size() + 1);  // where the character that holds this byte begins now
  std::vector<bool> starts(text.size() + 1, false);
  for (size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text.substr(i));
    starts[i] = true;
    for (int k = 0; k < c.length; ++k)
      place[i + static_cast<size_t>(k)] = static_cast<uint32_t>(repaired.size());
    append_utf8(repaired, c.code);
    i += static_cast<size_t>(c.length);
  }
  place[text.size()] = static_cast<uint32_t>(repaired.size());
  starts[text.size()] = true;
  for (const ByteSpan s : trusted) {
    size_t begin = s.begin;
    while (!starts[begin]) ++begin;  // a character half inside is not trusted
    if (begin < s.end && place[begin] < place[s.end]) spans.push_back({place[begin], place[s.end]});
  }
  return true;
}

/// Sorted spans inside the text, touching ones joined.
std::vector<ByteSpan> joined_spans(std::span<const ByteSpan> trusted, size_t size) {
  std::vector<ByteSpan> out;
  size_t last = 0;
  for (const ByteSpan s : trusted) {
    if (s.begin > s.end || s.end > size || s.begin < last) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("the trusted span [{}, {}) is not sorted or not inside the text of {} bytes",
                              s.begin, s.end, size));
    }
    last = s.end;
    if (s.begin == s.end) continue;
    if (!out.empty() && out.back().end == s.begin)
      out.back().end = s.end;
    else
      out.push_back(s);
  }
  return out;
}

/// The parts of `spans` inside `part`, counted from its beginning.
std::vector<ByteSpan> inside(std::span<const ByteSpan> spans, ByteSpan part) {
  std::vector<ByteSpan> out;
  for (const ByteSpan s : spans) {
    const size_t begin = std::max(s.begin, part.begin);
    const size_t end = std::min(s.end, part.end);
    if (begin < end) out.push_back({begin - part.begin, end - part.begin});
  }
  return out;
}

std::vector<ByteSpan> spans_of(const std::vector<uint8_t>& trusted) {
  std::vector<ByteSpan> out;
  for (size_t i = 0; i < trusted.size(); ++i) {
    if (!trusted[i]) continue;
    if (!out.empty() && out.back().end == i)
      out.back().end = i + 1;
    else
      out.push_back({i, i + 1});
  }
  return out;
}

/// What encoding one text needs besides the tokenizer; kept for the next text.
struct Workspace {
  PreTokenizedText pieces;
  BpeScratch scratch;
  PieceCache cache;
};

}  // namespace

struct Tokenizer::Impl {
  TokenizerParts parts;
  AddedTokenMatcher in_text{{}};
  AddedTokenMatcher in_normalized{{}};
  std::vector<int> added_by_id;  // index into parts.added, -1 = none
  std::vector<std::string>
      written;  // what parts.added decode to: their contents, normalized where the token is
  std::unordered_set<std::string_view> special_texts;  // contents of the special ones, in parts.added
  int size = 0;
  mutable std::mutex mutex;
  mutable std::vector<std::unique_ptr<Workspace>> idle;

  explicit Impl(TokenizerParts p) : parts(std::move(p)) {
    size = parts.model->vocabulary().size();
    std::vector<AddedToken> raw;
    std::vector<AddedToken> normalized;
    for (const AddedToken& token : parts.added) {
      size = std::max(size, token.id + 1);
      AddedToken wanted = token;
      if (token.normalized && parts.normalizer) wanted.content = parts.normalizer->normalized(token.content);
      written.push_back(wanted.content);
      (token.normalized ? normalized : raw).push_back(std::move(wanted));
    }
    in_text = AddedTokenMatcher(std::move(raw));
    in_normalized = AddedTokenMatcher(std::move(normalized));
    added_by_id.assign(static_cast<size_t>(size), -1);
    for (const AddedToken& token : parts.added) {
      if (token.special) special_texts.insert(token.content);
    }
    for (size_t i = 0; i < parts.added.size(); ++i)
      added_by_id[static_cast<size_t>(parts.added[i].id)] = static_cast<int>(i);
    std::sort(parts.stop_ids.begin(), parts.stop_ids.end());
    parts.stop_ids.erase(std::unique(parts.stop_ids.begin(), parts.stop_ids.end()), parts.stop_ids.end());
  }

  const AddedToken* added(TokenId id) const {
    if (id < 0 || id >= size || added_by_id[static_cast<size_t>(id)] < 0) return nullptr;
    return &parts.added[static_cast<size_t>(added_by_id[static_cast<size_t>(id)])];
  }

  /// A workspace for the time of one call.
  class Borrowed {
   public:
    explicit Borrowed(const Impl& impl) : impl_(impl) {
      const std::lock_guard lock(impl.mutex);
      if (!impl.idle.empty()) {
        workspace_ = std::move(impl.idle.back());
        impl.idle.pop_back();
      }
      if (!workspace_) workspace_ = std::make_unique<Workspace>();
    }
    ~Borrowed() {
      constexpr size_t kWorthKeeping = size_t{4} << 20;  // bytes; the buffers of a huge text are let go
      if (workspace_->scratch.ids.capacity() * sizeof(TokenId) > kWorthKeeping) workspace_->scratch = {};
      if (workspace_->pieces.storage.capacity() > kWorthKeeping ||
          workspace_->pieces.pieces.capacity() * sizeof(ByteSpan) > kWorthKeeping) {
        workspace_->pieces = {};
      }
      const std::lock_guard lock(impl_.mutex);
      impl_.idle.push_back(std::move(workspace_));
    }
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;
    Workspace& operator*() const { return *workspace_; }

   private:
    const Impl& impl_;
    std::unique_ptr<Workspace> workspace_;
  };

  std::vector<TokenId> encode(std::string_view text, std::span<const ByteSpan> trusted,
                              SpecialTokens specials) const {
    if (text.size() >= kMaxText) {
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("a text of {} bytes is too long to tokenize; the limit is {}", text.size(), kMaxText));
    }
    std::string repaired;
    std::vector<ByteSpan> spans;
    if (repair_utf8(text, trusted, repaired, spans)) {
      text = repaired;
      trusted = spans;
    }
    const Borrowed workspace(*this);
    std::vector<TokenId> out;
    out.reserve(text.size() / 3 + 4);
    std::vector<TextPart> found;
    if (specials == SpecialTokens::none) {
      if (!text.empty()) found.push_back({{0, text.size()}, -1});
    } else {
      in_text.split(text, trusted, specials == SpecialTokens::non_special, found);
    }
    const bool controls = specials == SpecialTokens::all && trusted.size() == 1 && trusted[0].begin == 0 &&
                          trusted[0].end == text.size();
    for (const TextPart& part : found) {
      if (part.id >= 0) {
        out.push_back(part.id);
      } else {
        append_text(text.substr(part.span.begin, part.span.end - part.span.begin), part.span.begin == 0,
                    in_normalized.empty() ? std::vector<ByteSpan>() : inside(trusted, part.span), specials,
                    controls, *workspace, out);
      }
    }
    return out;
  }

  /// A text between the tokens that are looked for before normalization.
  void append_text(std::string_view text, bool at_start, std::vector<ByteSpan> trusted,
                   SpecialTokens specials, bool controls, Workspace& workspace,
                   std::vector<TokenId>& out) const {
    NormalizedText normalized;
    if (parts.normalizer && !parts.normalizer->leaves_as_is(text)) {
      normalized.text = text;
      normalized.at_start = at_start;
      if (!trusted.empty()) {
        normalized.trusted.assign(text.size(), 0);
        for (const ByteSpan s : trusted)
          std::fill(normalized.trusted.begin() + static_cast<ptrdiff_t>(s.begin),
                    normalized.trusted.begin() + static_cast<ptrdiff_t>(s.end), uint8_t{1});
      }
      parts.normalizer->apply(normalized);
      text = normalized.text;
      at_start = normalized.at_start;
      trusted = spans_of(normalized.trusted);
    }
    if (in_normalized.empty() || specials == SpecialTokens::none)
      return append_pieces(text, at_start, controls, workspace, out);
    std::vector<TextPart> found;
    in_normalized.split(text, trusted, specials == SpecialTokens::non_special, found);
    for (const TextPart& part : found) {
      if (part.id >= 0) {
        out.push_back(part.id);
      } else {
        append_pieces(text.substr(part.span.begin, part.span.end - part.span.begin),
                      at_start && part.span.begin == 0, controls, workspace, out);
      }
    }
  }

  /// A text without added tokens. `controls`: a whole piece may still be a special token of the vocabulary,
  /// as ignore_merges has it.
  void append_pieces(std::string_view text, bool at_start, bool controls, Workspace& workspace,
                     std::vector<TokenId>& out) const {
    PreTokenizedText& pre = workspace.pieces;
    pre.reset(text, at_start);
    if (parts.pre_tokenizer) parts.pre_tokenizer->apply(pre);
    for (const ByteSpan span : pre.pieces) {
      const std::string_view piece = pre.piece(span);
      if (workspace.cache.append(piece, out)) continue;
      const size_t before = out.size();
      const auto whole = parts.model->whole(piece, !pre.bytes_mapped, workspace.scratch);
      if (whole) {
        const AddedToken* const token = added(*whole);
        const bool control = token && token->special;
        if (!control || controls) {
          out.push_back(*whole);
          if (!control) workspace.cache.insert(piece, std::span<const TokenId>(out).subspan(before));
          continue;
        }
      }
      if (pre.bytes_mapped)
        parts.model->append_text(piece, workspace.scratch, out);
      else
        parts.model->append_bytes(piece, workspace.scratch, out);
      if (!whole) workspace.cache.insert(piece, std::span<const TokenId>(out).subspan(before));
    }
  }
};

Tokenizer::Tokenizer(TokenizerParts parts) : impl_(std::make_unique<Impl>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;

std::shared_ptr<const Tokenizer> Tokenizer::from_json_text(std::string_view tokenizer_json,
                                                           const std::string& what) {
  return std::make_shared<const Tokenizer>(parse_tokenizer_json(tokenizer_json, what));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_folder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer.json";
  TokenizerParts parts = parse_tokenizer_json(MappedFile::open(file).text(), file.string());
  const std::filesystem::path config = folder / "tokenizer_config.json";
  if (is_there(config)) {
    apply_tokenizer_config(parse_json(read_text_file(config), config.string()), config.string(), parts);
  }
  return std::make_shared<const Tokenizer>(std::move(parts));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens specials) const {
  const ByteSpan whole{0, text.size()};
  return impl_->encode(text, std::span<const ByteSpan>(&whole, text.empty() ? 0 : 1), specials);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, std::span<const ByteSpan> trusted) const {
  return impl_->encode(text, joined_spans(trusted, text.size()), SpecialTokens::all);
}

std::vector<TokenId> Tokenizer::add_special(std::vector<TokenId> ids) const {
  return impl_->parts.post_processor.apply(std::move(ids));
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  // The detokenizer only reads; the alias keeps no count.
  Detokenizer stream(std::shared_ptr<const Tokenizer>(std::shared_ptr<const Tokenizer>(), this),
                     skip_special);
  std::string out;
  for (const TokenId id : ids) out += stream.push(id);
  return out + stream.finish();
}

int Tokenizer::size() const { return impl_->size; }
bool Tokenizer::has(TokenId id) const { return impl_->added(id) || impl_->parts.model->vocabulary().has(id); }
bool Tokenizer::is_added(TokenId id) const { return impl_->added(id) != nullptr; }
bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = impl_->added(id);
  return token && token->special;
}
bool Tokenizer::is_skipped(TokenId id) const {
  const auto text = stored_text(id);
  return text && impl_->special_texts.contains(*text);
}

std::optional<TokenId> Tokenizer::find(std::string_view token) const {
  return find_token(impl_->parts, token);
}

std::optional<std::string_view> Tokenizer::stored_text(TokenId id) const {
  if (const AddedToken* token = impl_->added(id))
    return impl_->written[static_cast<size_t>(token - impl_->parts.added.data())];
  if (impl_->parts.model->vocabulary().has(id)) return impl_->parts.model->vocabulary().text(id);
  return std::nullopt;
}

std::string Tokenizer::token_text(TokenId id) const { return std::string(stored_text(id).value_or("")); }

std::optional<TokenId> Tokenizer::bos() const { return impl_->parts.bos; }
std::optional<TokenId> Tokenizer::eos() const { return impl_->parts.eos; }
std::optional<TokenId> Tokenizer::pad() const { return impl_->parts.pad; }
std::optional<TokenId> Tokenizer::unk() const { return impl_->parts.unk; }
const std::vector<TokenId>& Tokenizer::stop_ids() const { return impl_->parts.stop_ids; }

std::unique_ptr<DecoderSink> Tokenizer::decoder_stream(std::unique_ptr<DecoderSink> next) const {
  return impl_->parts.decoder->stream(std::move(next));
}

}  // namespace qwench
