#include "text/token_bytes.h"

#include <cstdio>
#include <string_view>
#include <utility>

#include "text/bpe_byte_alphabet.h"

namespace qwench {

std::string token_bytes(const Tokenizer& tokenizer, TokenId id) {
  const auto stored = tokenizer.stored_text(id);
  if (!stored) return "";
  if (tokenizer.is_added(id)) return std::string(*stored);
  unsigned byte = 0;
  if (stored->size() == 6 && std::sscanf(std::string(*stored).c_str(), "<0x%2X>", &byte) == 1)
    return std::string(1, static_cast<char>(byte));
  if (auto bytes = from_byte_alphabet(*stored)) return *std::move(bytes);
  constexpr std::string_view kMetaspace = "\xE2\x96\x81";
  std::string text(*stored);
  for (size_t at = 0; (at = text.find(kMetaspace, at)) != std::string::npos; ++at)
    text.replace(at, kMetaspace.size(), " ");
  return text;
}

}  // namespace qwench
