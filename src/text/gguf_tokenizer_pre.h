#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace qwench {

/// How a "gpt2" tokenizer of a GGUF treats text, by its tokenizer.ggml.pre: in the terms of a tokenizer.json.
struct GgufPreTokenizer {
  Json normalizer;
  Json pre_tokenizer;
  bool ignore_merges = false;
  bool add_bos = false;  ///< where the file does not say
};

/// Throws Error (unsupported), beginning with `what`, which names the kind and those supported.
GgufPreTokenizer gguf_pre_tokenizer(std::string_view kind, const std::string& what);

/// The kind whose treatment of text is that of a tokenizer.json with these parts; empty when none is.
std::optional<std::string_view> gguf_pre_tokenizer_name(const Json& normalizer, const Json& pre_tokenizer,
                                                        bool ignore_merges);
/// "qwen2, ...": the kinds that gguf_pre_tokenizer_name may answer.
std::string known_gguf_pre_tokenizers();

}  // namespace qwench
