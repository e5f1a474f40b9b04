#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace qwench {

/// Where the text of tokens goes on its way out. A token comes as chunks and an end; a step that joins tokens
/// (Fuse, ByteLevel) passes on chunks and one end only, so that text can leave before the stream is over.
class DecoderSink {
 public:
  virtual ~DecoderSink() = default;
  virtual void chunk(std::string_view text) = 0;
  virtual void end_token() = 0;
  virtual void finish() = 0;  ///< no more tokens
};

/// One step of a stream being decoded: state of one stream, not thread-safe.
class DecoderStep : public DecoderSink {
 public:
  explicit DecoderStep(std::unique_ptr<DecoderSink> next) : next_(std::move(next)) {}
  void chunk(std::string_view text) override { next_->chunk(text); }
  void end_token() override { next_->end_token(); }
  void finish() override { next_->finish(); }

 protected:
  std::unique_ptr<DecoderSink> next_;
};

/// The "decoder" of a tokenizer.json. Immutable and thread-safe.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  /// The steps of a new stream, the last of which writes to `next`.
  virtual std::unique_ptr<DecoderSink> stream(std::unique_ptr<DecoderSink> next) const = 0;

  /// JSON null joins the tokens with spaces, as the reference does. Throws Error (malformed, unsupported),
  /// which names an unknown type and those supported.
  static std::shared_ptr<const TokenDecoder> from_json(const Json& json, const std::string& where);
};

}  // namespace qwench
