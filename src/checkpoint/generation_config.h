#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "qwench/sampling.h"

namespace qwench {

class GgufFile;

/// What a model's authors advise for generation: generation_config.json, or general.sampling.* of a GGUF
/// file.
struct GenerationConfig {
  SamplingOptions sampling;            ///< do_sample false gives temperature 0
  std::optional<bool> do_sample;       ///< as written
  std::optional<int> max_new_tokens;   ///< >= 0
  std::vector<TokenId> eos_token_ids;  ///< empty when the file names none
  std::optional<TokenId> bos_token_id;
  std::optional<TokenId> pad_token_id;

  /// Checks the type and range of each field it knows; a setting that would change the text and is not
  /// supported (num_beams above 1, ...) is logged as a warning. Throws Error (malformed) naming `what` and
  /// the field.
  static GenerationConfig from_json(const Json& json, const std::string& what);
  static GenerationConfig from_gguf(const GgufFile& file);
};

}  // namespace qwench
