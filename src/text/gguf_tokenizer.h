#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qwench/sampling.h"

namespace qwench {

class GgufFile;

/// tokenizer.ggml.token_type (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
enum class GgufTokenType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

/// The tokenizer.ggml.* fields of a GGUF file. The views need only outlive the call they are passed to.
struct GgufVocabulary {
  std::string what;        ///< the file, for errors
  std::string_view model;  ///< "gpt2" (byte-level BPE) or "llama" (SentencePiece BPE)
  std::string_view pre;    ///< how text is cut before the merges, for "gpt2": "qwen2", "smollm", ...
  std::vector<std::string_view> tokens;    ///< by id
  std::vector<std::string_view> merges;    ///< "a b", best first; for "gpt2"
  std::vector<GgufTokenType> token_types;  ///< by id; empty: all normal
  std::vector<float> scores;               ///< by id, a higher one merges first; for "llama"
  std::optional<TokenId> bos, eos, eot, eom, unknown, padding;
  std::optional<bool> add_bos, add_eos;  ///< absent: as the kind of tokenizer does it
  std::optional<bool> add_space_prefix;  ///< for "llama": a space before the text
};

/// Whether the metadata has a tokenizer at all.
bool has_gguf_vocabulary(const GgufFile& file);

/// Throws Error (malformed) that names the field which is missing, of a wrong type or out of range.
GgufVocabulary read_gguf_vocabulary(const GgufFile& file);

}  // namespace qwench
