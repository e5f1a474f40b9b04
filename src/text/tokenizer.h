#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qwench/sampling.h"
#include "text/byte_span.h"

namespace qwench {

struct GgufVocabulary;
struct TokenizerParts;
class DecoderSink;

/// Which added tokens are recognised in a text. What is not recognised is tokenized as the plain text it is.
enum class SpecialTokens {
  all,          ///< every one
  non_special,  ///< those not flagged special ("<think>", but not "<|im_end|>")
  none,         ///< none: nothing a user types becomes a control token
};

/// Strings to token ids and back, as a tokenizer.json or a GGUF says it. Equal, id for id, to Hugging Face
/// `tokenizers` 0.23. Immutable and thread-safe after it is loaded; encoding takes time proportional to the
/// length.
class Tokenizer {
 public:
  /// The content of a tokenizer.json; errors begin with `what`, its file name. Throws Error (malformed,
  /// unsupported).
  static std::shared_ptr<const Tokenizer> from_json_text(std::string_view tokenizer_json,
                                                         const std::string& what);

  /// tokenizer.json of a folder, and from its tokenizer_config.json, where there is one, which tokens are
  /// bos, eos and pad, whether bos and eos are added, and added tokens that tokenizer.json lacks. Throws
  /// Error (also not_found).
  static std::shared_ptr<const Tokenizer> from_folder(const std::filesystem::path& folder);

  /// The tokenizer inside a GGUF. Qwen's text is normalized (NFC) as Qwen's own tokenizer does it.
  static std::shared_ptr<const Tokenizer> from_gguf(const GgufVocabulary& vocabulary);

  explicit Tokenizer(TokenizerParts parts);
  ~Tokenizer();

  /// Ids of `text`, without BOS and EOS. Each ill-formed part of the UTF-8 counts as one U+FFFD. Throws Error
  /// (invalid_argument) above 2 GB.
  std::vector<TokenId> encode(std::string_view text, SpecialTokens specials) const;

  /// The same with tokens flagged special recognised only where every byte of them lies in one of the
  /// `trusted` spans, sorted and disjoint; other added tokens ("<think>") everywhere, as the official
  /// implementations do. Between the recognised ones the text is tokenized as one, whoever wrote it.
  std::vector<TokenId> encode(std::string_view text, std::span<const ByteSpan> trusted) const;

  /// Puts around the ids what the tokenizer puts around a text (BOS, EOS), as its post-processor says.
  std::vector<TokenId> add_special(std::vector<TokenId> ids) const;

  /// The text of `ids`; those without a token (see has) give nothing, ill-formed UTF-8 becomes U+FFFD.
  /// `skip_special` leaves out the tokens flagged special (see is_skipped).
  std::string decode(std::span<const TokenId> ids, bool skip_special) const;

  int size() const;            ///< 1 + the largest id that is a token; ids from there on decode to nothing
  bool has(TokenId id) const;  ///< whether there is such a token
  bool is_special(TokenId id) const;
  /// Whether decode(skip_special) leaves the token out: what it decodes to is the content of a special token,
  /// as Hugging Face tokenizers has it. A special token that the normalizer changes is not left out.
  bool is_skipped(TokenId id) const;
  bool is_added(TokenId id) const;  ///< recognised in the text, before the merges
  std::optional<TokenId> find(
      std::string_view token) const;         ///< by the text of the vocabulary ("Ġthe", "<|im_end|>")
  std::string token_text(TokenId id) const;  ///< the same way back; empty without a token

  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  std::optional<TokenId> pad() const;
  std::optional<TokenId> unk() const;
  /// The ids that the files of the tokenizer say end an answer: eos and, in a GGUF, end of turn. Sorted.
  const std::vector<TokenId>& stop_ids() const;

  /// Steps for decoding a stream, ending in `next`; for Detokenizer.
  std::unique_ptr<DecoderSink> decoder_stream(std::unique_ptr<DecoderSink> next) const;
  /// What decoding reads of a token: null for ids without one.
  std::optional<std::string_view> stored_text(TokenId id) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace qwench
