#pragma once

#include <memory>
#include <string>
#include <vector>

namespace qwench {

class Grammar;

/// What a completion's text must be. Tokens that would lead out of it are not drawn, stop ids only where the
/// text is complete; where nothing can follow, the completion ends (FinishReason::stop). See
/// docs/structured.md for what is supported.
struct Constraint {
  enum class Kind {
    json_schema,  ///< `text`: a JSON Schema; JSON that is valid under it
    json_object,  ///< any JSON object
    regex,        ///< `text`: a pattern that the whole text matches
    choice,       ///< one of `choices`
    grammar,      ///< `text`: a grammar in llama.cpp's notation (GBNF)
    compiled,     ///< `compiled`
  };
  /// Where it begins: behind a block of reasoning, of whose text nothing is asked.
  enum class Reasoning {
    none,      ///< with the first token
    possible,  ///< the text may begin with "<think>": then behind "</think>"
    open,      ///< the prompt has opened the block: behind "</think>"
  };

  Kind kind = Kind::json_object;
  std::string text = {};
  std::vector<std::string> choices = {};
  std::shared_ptr<const Grammar> compiled = {};
  Reasoning reasoning = Reasoning::none;
};

}  // namespace qwench
