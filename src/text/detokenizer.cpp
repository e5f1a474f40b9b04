#include "text/detokenizer.h"

#include <utility>

#include "text/decoder.h"

namespace qwench {
namespace {

class StringSink : public DecoderSink {
 public:
  explicit StringSink(std::string& out) : out_(out) {}
  void chunk(std::string_view text) override { out_ += text; }
  void end_token() override {}
  void finish() override {}

 private:
  std::string& out_;
};

}  // namespace

Detokenizer::Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)),
      skip_special_(skip_special),
      out_(std::make_unique<std::string>()),
      steps_(tokenizer_->decoder_stream(std::make_unique<StringSink>(*out_))) {}

Detokenizer::~Detokenizer() = default;
Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;

std::string Detokenizer::push(TokenId id) {
  const auto text = tokenizer_->stored_text(id);
  if (!text || (skip_special_ && tokenizer_->is_skipped(id))) return {};
  steps_->chunk(*text);
  steps_->end_token();
  return std::exchange(*out_, {});
}

std::string Detokenizer::finish() {
  steps_->finish();
  return std::exchange(*out_, {});
}

}  // namespace qwench
