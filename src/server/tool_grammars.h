#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "grammar/grammar.h"
#include "qwench/constraint.h"
#include "server/tool_use.h"
#include "text/tool_syntax.h"

namespace qwench::server {

/// Grammars of answers that call tools. Those used last are kept, so that what the engine has found out about
/// them serves the next turns of a conversation too. Thread-safe.
class ToolGrammars {
 public:
  /// `text`: what an answer that calls nothing must be; absent: any text. Null where an answer may be
  /// anything: calls are not demanded, no tool is strict, all may be called, and nothing is said of the text.
  /// Throws ApiError (400) where a schema cannot be kept to.
  std::shared_ptr<const Grammar> get(ToolSyntax syntax, const ToolUse& use,
                                     const std::optional<Constraint>& text = std::nullopt);

 private:
  using Entry = std::pair<std::string, std::shared_ptr<const Grammar>>;

  std::mutex mutex_;
  std::list<Entry> entries_;  // the one used last first
};

}  // namespace qwench::server
