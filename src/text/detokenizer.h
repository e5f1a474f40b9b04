#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace qwench {

/// Text of a stream of tokens, piece by piece. Never part of a character: what further tokens could still
/// change is held back, and ill-formed bytes become U+FFFD once nothing can complete them. All pieces and the
/// end joined equal Tokenizer::decode of all ids. State of one stream, not thread-safe.
class Detokenizer {
 public:
  /// `skip_special` leaves out the tokens flagged special.
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  std::string push(TokenId id);  ///< the text that this token releases
  std::string finish();          ///< what the end of the stream still releases; push no more after it

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  std::unique_ptr<std::string> out_;  // of the last step; its address stays when this object moves
  std::unique_ptr<DecoderSink> steps_;
};

}  // namespace qwench
