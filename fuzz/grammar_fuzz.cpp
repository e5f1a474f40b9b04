// The first byte says what the rest is: a JSON Schema, a pattern or a GBNF grammar, up to a byte 0, and a
// text behind it. It is refused with an Error, or gives a grammar that can be walked: any walk of masks goes
// on or is complete.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar_cache.h"
#include "grammar/token_masks.h"
#include "qwench/error.h"

namespace {

std::shared_ptr<const qwench::TokenTrie> bytes_and_pairs() {
  std::vector<std::pair<std::string, qwench::TokenId>> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(std::string(1, static_cast<char>(byte)), byte);
  for (const char* pair : {"\":", "\",", "{\"", "}}", "ab", "12", "\xC3\xA9", "]]"})
    tokens.emplace_back(pair, static_cast<qwench::TokenId>(tokens.size()));
  const int size = static_cast<int>(tokens.size());
  return std::make_shared<const qwench::TokenTrie>(std::move(tokens), size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 14;
  constexpr int kSteps = 64;
  if (size == 0 || size > kLimit) return 0;
  static const auto trie = bytes_and_pairs();
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t cut = std::min(input.find('\0'), input.size());
  qwench::Constraint constraint;
  constexpr qwench::Constraint::Kind kKinds[] = {qwench::Constraint::Kind::json_schema,
                                                 qwench::Constraint::Kind::regex,
                                                 qwench::Constraint::Kind::grammar};
  constraint.kind = kKinds[data[0] % 3];
  constraint.text = input.substr(0, cut);
  try {
    const auto grammar = qwench::compile_constraint(constraint);
    const std::string_view text = input.substr(cut);
    static_cast<void>(qwench::accepts(*grammar, text.substr(0, 256)));
    qwench::TokenMasks masks(grammar, trie, [](const std::string&) { return std::nullopt; });
    qwench::TokenMasks::Position position = masks.start();
    for (int step = 0; step < kSteps; ++step) {
      const auto mask = masks.mask(position);
      if (!mask->any) {
        if (!masks.complete(position)) std::abort();
        break;
      }
      const auto from =
          static_cast<size_t>(text.empty() ? step : static_cast<unsigned char>(text[step % text.size()]));
      const auto count = static_cast<size_t>(trie->vocabulary_size());
      size_t id = from % count;
      while (!mask->has(static_cast<qwench::TokenId>(id))) id = (id + 1) % count;
      if (!masks.accept(position, static_cast<qwench::TokenId>(id))) std::abort();
    }
  } catch (const qwench::Error& error) {
    if (error.kind() != qwench::ErrorKind::invalid_argument) std::abort();
  }
  return 0;
}
