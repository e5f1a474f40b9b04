#include "text/tokenizer_config.h"

#include <fmt/format.h>

#include <charconv>

#include "checkpoint/printable.h"
#include "core/log.h"
#include "text/tokenizer_fields.h"

namespace qwench {
namespace {

/// "<s>", or {"content": "<s>", ...}.
std::optional<TokenId> named_token(const Fields& fields, std::string_view name, const TokenizerParts& parts) {
  if (!fields.has(name)) return std::nullopt;
  const Json& value = fields.get(name);
  const std::string text =
      value.is_object() ? Fields(value, fields.at(name)).text("content") : fields.text(name);
  const auto id = find_token(parts, text);
  if (!id && !text.empty())
    log_detail(fmt::format("{} names {}, which is no token", fields.at(name), printable(text)));
  return id;
}

void add_missing_tokens(const Fields& fields, TokenizerParts& parts) {
  if (!fields.has("added_tokens_decoder")) return;
  const Json& tokens = fields.get("added_tokens_decoder");
  if (!tokens.is_object())
    fields.fail("added_tokens_decoder", fmt::format("is {}, expected an object", tokens.type_name()));
  for (const auto& [key, value] : tokens.items()) {
    const Fields token(value, fields.at("added_tokens_decoder") + "." + key);
    AddedToken added;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), added.id);
    if (error != std::errc() || end != key.data() + key.size() || added.id < 0 || added.id >= kMaxTokenId) {
      fields.fail("added_tokens_decoder", fmt::format("has the key {}, expected an id from 0 to {}",
                                                      printable(key), kMaxTokenId - 1));
    }
    added.content = token.text("content");
    added.special = token.flag("special", false);
    added.single_word = token.flag("single_word", false);
    added.lstrip = token.flag("lstrip", false);
    added.rstrip = token.flag("rstrip", false);
    added.normalized = token.flag("normalized", !added.special);
    const bool known = parts.added_by_text.contains(added.content) || parts.added_by_id.contains(added.id);
    if (!known) add_token(parts, std::move(added), token.where());
  }
}

}  // namespace

void apply_tokenizer_config(const Json& config, const std::string& what, TokenizerParts& parts) {
  const Fields fields(config, what);
  add_missing_tokens(fields, parts);
  const auto take = [&](std::string_view name, std::optional<TokenId>& id) {
    if (const auto named = named_token(fields, name, parts)) id = named;
  };
  take("bos_token", parts.bos);
  take("eos_token", parts.eos);
  take("pad_token", parts.pad);
  take("unk_token", parts.unk);
  if (parts.eos) parts.stop_ids.push_back(*parts.eos);

  // Llama's tokenizer class builds its template from these two flags. Elsewhere they can only add to an empty
  // one.
  const bool llama =
      fields.has("tokenizer_class") && fields.text("tokenizer_class").starts_with("LlamaTokenizer");
  const bool says = fields.has("add_bos_token") || fields.has("add_eos_token");
  const bool bos = fields.flag("add_bos_token", false);
  const bool eos = fields.flag("add_eos_token", false);
  if (says && (llama || (parts.post_processor.adds_nothing() && (bos || eos)))) {
    std::vector<TokenId> before;
    std::vector<TokenId> after;
    if (bos && parts.bos) before.push_back(*parts.bos);
    if (eos && parts.eos) after.push_back(*parts.eos);
    parts.post_processor = PostProcessor::around(std::move(before), std::move(after));
  }
}

}  // namespace qwench
