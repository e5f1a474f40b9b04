// A tokenizer.json that is any bytes: an error or a tokenizer that works, never a crash. A file that loads
// encodes and decodes a text, whole and with trusted spans.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/log.h"
#include "qwench/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using qwench::SpecialTokens;
  constexpr std::string_view kText =
      "<s>Hello  w\xC3\xB6rld's 123\n\n\xE4\xBD\xA0\xE5\xA5\xBD e\xCC\x81 \xF0\x9F\x98\x80\xFF</s> ";
  try {
    const auto tokenizer =
        qwench::Tokenizer::from_json_text({reinterpret_cast<const char*>(data), size}, "fuzz");
    for (const auto specials : {SpecialTokens::all, SpecialTokens::non_special, SpecialTokens::none}) {
      const auto ids = tokenizer->add_special(tokenizer->encode(kText, specials));
      tokenizer->decode(ids, true);
      tokenizer->decode(ids, false);
    }
    const qwench::ByteSpan trusted[] = {{0, 2}, {2, 9}, {30, kText.size()}};
    tokenizer->encode(kText, trusted);
  } catch (const qwench::Error&) {
  }
  return 0;
}
