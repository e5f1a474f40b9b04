#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "qwench/sampling.h"

namespace qwench {

/// What is put around the tokens of a text: the "single" template of a TemplateProcessing and its like.
/// Plain data; an empty one adds nothing.
class PostProcessor {
 public:
  PostProcessor() = default;

  /// Throws Error (malformed, unsupported), which names an unknown type and those supported. JSON null adds
  /// nothing.
  static PostProcessor from_json(const Json& json, const std::string& where);
  static PostProcessor around(std::vector<TokenId> before, std::vector<TokenId> after);

  std::vector<TokenId> apply(std::vector<TokenId> ids) const;
  bool adds_nothing() const { return steps_.empty(); }
  /// All ids it may add.
  std::vector<TokenId> added() const;

 private:
  struct Item {
    bool is_text = false;  ///< the tokens of the text stand here
    std::vector<TokenId> ids;
  };
  static void append_steps(const Json& json, const std::string& where, int depth,
                           std::vector<std::vector<Item>>& steps);

  std::vector<std::vector<Item>> steps_;  // one template after the other
};

}  // namespace qwench
