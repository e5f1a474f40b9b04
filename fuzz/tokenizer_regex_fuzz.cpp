// A pattern, a line end, a text: the pattern is refused, or its matches lie in order inside the text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/utf8.h"
#include "qwench/error.h"
#include "text/unicode_regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\n');
  const std::string text =
      qwench::to_valid_utf8(cut == std::string_view::npos ? "a1 B2" : input.substr(cut + 1, 256));
  try {
    std::vector<qwench::ByteSpan> matches;
    qwench::unicode::Regex::compile(input.substr(0, cut), "fuzz")->find_all(text, matches);
    size_t done = 0;
    for (const auto& m : matches) {
      if (m.begin < done || m.end < m.begin || m.end > text.size()) std::abort();
      done = m.end;
    }
  } catch (const qwench::Error&) {
  }
  return 0;
}
