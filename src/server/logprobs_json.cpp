#include "server/logprobs_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.h"
#include "server/prompt_text.h"
#include "text/token_bytes.h"

namespace qwench::server {
namespace {

/// JSON has no infinity; OpenAI's API writes this for what cannot be.
double finite(float logprob) { return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0; }

Json bytes_of_token(const std::string& bytes) {
  Json list = Json::array();
  for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
  return list;
}

Json token_entry(TokenId id, float logprob, const Tokenizer& tokenizer) {
  const std::string bytes = token_bytes(tokenizer, id);
  return {{"id", id},
          {"token", to_valid_utf8(bytes)},
          {"logprob", finite(logprob)},
          {"bytes", bytes_of_token(bytes)}};
}

/// Half a character has no text of its own: "bytes:\xe2\x80", so that different tokens stay different keys.
std::string token_name(TokenId id, const Tokenizer& tokenizer) {
  const std::string bytes = token_bytes(tokenizer, id);
  if (is_valid_utf8(bytes)) return bytes;
  std::string name = "bytes:";
  for (const char c : bytes) name += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return name;
}

int count_characters(std::string_view text) {
  return static_cast<int>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

Json chat_logprobs(const std::vector<TokenLogprob>& logprobs, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const TokenLogprob& token : logprobs) {
    Json entry = token_entry(token.id, token.logprob, tokenizer);
    Json top = Json::array();
    for (const auto& [id, logprob] : token.top) top.push_back(token_entry(id, logprob, tokenizer));
    entry["top_logprobs"] = std::move(top);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs(const std::vector<TokenLogprob>& logprobs, std::optional<TokenId> first,
                         const Tokenizer& tokenizer, int& offset) {
  Json tokens = Json::array();
  Json token_logprobs = Json::array();
  Json top_logprobs = Json::array();
  Json offsets = Json::array();
  const auto add = [&](TokenId id) {
    tokens.push_back(token_name(id, tokenizer));
    offsets.push_back(offset);
    offset += count_characters(token_bytes(tokenizer, id));
  };
  if (first) {
    add(*first);
    token_logprobs.push_back(nullptr);
    top_logprobs.push_back(nullptr);
  }
  for (const TokenLogprob& token : logprobs) {
    add(token.id);
    token_logprobs.push_back(finite(token.logprob));
    Json top = Json::object();
    for (const auto& [id, logprob] : token.top) top.emplace(token_name(id, tokenizer), finite(logprob));
    if (!token.top.empty()) top.emplace(token_name(token.id, tokenizer), finite(token.logprob));
    top_logprobs.push_back(token.top.empty() ? Json(nullptr) : std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(token_logprobs)},
          {"top_logprobs", std::move(top_logprobs)},
          {"text_offset", std::move(offsets)}};
}

void append_logprobs(Json& into, const Json& more) {
  if (into.is_null()) {
    into = more;
    return;
  }
  for (const auto& [name, list] : more.items()) {
    if (!list.is_array()) continue;
    for (const Json& entry : list) into[name].push_back(entry);
  }
}

}  // namespace qwench::server
