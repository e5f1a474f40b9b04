#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/json.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"

namespace qwench {

/// What a Tokenizer is made of, whichever file it comes from.
struct TokenizerParts {
  std::shared_ptr<const Bpe> model;
  std::vector<AddedToken> added;                          ///< ids and contents unique; see add_token
  std::unordered_map<std::string, size_t> added_by_text;  ///< index into added
  std::unordered_map<TokenId, size_t> added_by_id;
  std::shared_ptr<const Normalizer> normalizer;
  std::shared_ptr<const PreTokenizer> pre_tokenizer;
  PostProcessor post_processor;
  std::shared_ptr<const TokenDecoder> decoder;
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> pad;
  std::optional<TokenId> unk;
  std::vector<TokenId> stop_ids;
};

/// Reads a tokenizer.json. Throws Error (malformed, unsupported) that begins with `what`.
TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& what);

/// Adds a token; the id of a token that the model has already is kept. Throws Error (malformed) when the id
/// belongs to another token.
void add_token(TokenizerParts& parts, AddedToken token, const std::string& what);

/// The id of a token by its text, added ones first.
std::optional<TokenId> find_token(const TokenizerParts& parts, std::string_view text);

}  // namespace qwench
