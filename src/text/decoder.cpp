#include "text/decoder.h"

#include <fmt/format.h>

#include <functional>

#include "core/utf8.h"
#include "text/decoder_steps.h"
#include "text/tokenizer_fields.h"

namespace qwench {
namespace {

using Wrap = std::function<decoder::Sink(decoder::Sink)>;

class Simple : public TokenDecoder {
 public:
  explicit Simple(Wrap wrap) : wrap_(std::move(wrap)) {}
  std::unique_ptr<DecoderSink> stream(std::unique_ptr<DecoderSink> next) const override {
    return wrap_(std::move(next));
  }

 private:
  Wrap wrap_;
};

class DecoderSequence : public TokenDecoder {
 public:
  explicit DecoderSequence(std::vector<std::shared_ptr<const TokenDecoder>> steps)
      : steps_(std::move(steps)) {}
  std::unique_ptr<DecoderSink> stream(std::unique_ptr<DecoderSink> next) const override {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) next = (*step)->stream(std::move(next));
    return next;
  }

 private:
  std::vector<std::shared_ptr<const TokenDecoder>> steps_;
};

std::shared_ptr<const TokenDecoder> simple(Wrap wrap) { return std::make_shared<Simple>(std::move(wrap)); }

char32_t one_character(const Fields& fields, std::string_view name) {
  const std::u32string text = to_utf32(fields.text(name));
  if (text.size() != 1) fields.fail(name, "is not one character");
  return text[0];
}

std::shared_ptr<const TokenDecoder> parse(const Json& json, const std::string& where, int depth) {
  const Fields fields(json, where);
  const std::string type = fields.type();
  if (type == "Sequence") {
    fields.only({"decoders"});
    if (depth > 16) fields.fail("decoders", "are nested more than 16 deep");
    std::vector<std::shared_ptr<const TokenDecoder>> steps;
    for (const Json& step : fields.list("decoders")) {
      steps.push_back(parse(step, fmt::format("{}[{}]", fields.at("decoders"), steps.size()), depth + 1));
    }
    return std::make_shared<DecoderSequence>(std::move(steps));
  }
  if (type == "ByteLevel") {
    fields.only({"add_prefix_space", "trim_offsets", "use_regex"});
    return simple(decoder::byte_level);
  }
  if (type == "ByteFallback" || type == "Fuse") {
    fields.only({});
    return simple(type == "Fuse" ? decoder::fuse : decoder::byte_fallback);
  }
  if (type == "Replace") {
    fields.only({"pattern", "content"});
    const auto pattern = TokenizerPattern::from_json(fields.get("pattern"), fields.at("pattern"));
    return simple([pattern, content = fields.text("content")](decoder::Sink next) {
      return decoder::replace(pattern, content, std::move(next));
    });
  }
  if (type == "Strip") {
    fields.only({"content", "start", "stop"});
    const char32_t what = one_character(fields, "content");
    const auto start = static_cast<size_t>(fields.number("start", 0, 1 << 20));
    const auto stop = static_cast<size_t>(fields.number("stop", 0, 1 << 20));
    return simple([=](decoder::Sink next) { return decoder::strip(what, start, stop, std::move(next)); });
  }
  if (type == "Metaspace") {
    fields.only({"replacement", "str_rep", "prepend_scheme", "add_prefix_space", "split"});
    const char32_t mark = one_character(fields, "replacement");
    const bool drops = fields.text_or("prepend_scheme",
                                      fields.flag("add_prefix_space", true) ? "always" : "never") != "never";
    return simple([=](decoder::Sink next) { return decoder::metaspace(mark, drops, std::move(next)); });
  }
  if (type == "BPEDecoder") {
    fields.only({"suffix"});
    return simple([suffix = fields.text("suffix")](decoder::Sink next) {
      return decoder::word_suffix(suffix, std::move(next));
    });
  }
  fields.unknown_type("decoder",
                      "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, BPEDecoder and Sequence");
}

}  // namespace

std::shared_ptr<const TokenDecoder> TokenDecoder::from_json(const Json& json, const std::string& where) {
  if (json.is_null()) return simple([](decoder::Sink next) { return decoder::join(" ", std::move(next)); });
  return parse(json, where, 0);
}

}  // namespace qwench
