#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "grammar/grammar.h"
#include "qwench/constraint.h"
#include "text/tool_syntax.h"

namespace qwench {

/// A tool that a model may call.
struct ToolSignature {
  std::string name;
  Json parameters;  ///< JSON Schema of the arguments, an object's; null: any object
};

/// The language of answers that call tools, in a model's own syntax: one call, or one and more, a newline
/// between two, where `parallel`. Where not `required`, an answer may also be any text that holds no call, or
/// where `text` is given, in place of calls and not before them, a text of that constraint.
/// In Hermes's form a call may stand without its tags where an answer begins: then it is the only one, and an
/// answer that begins like one of a tool with a schema is one.
/// "<tool_call>" and "</tool_call>" are the vocabulary's tokens of that text where it has them, else their
/// bytes. Arguments that are strings hold, in Qwen3-Coder's syntax, no "</parameter>".
/// Throws Error (invalid_argument): no tools, or a schema that compile_json_schema refuses or nothing
/// satisfies; the sentence names the tool.
std::shared_ptr<const Grammar> compile_tool_calls(ToolSyntax syntax, const std::vector<ToolSignature>& tools,
                                                  bool parallel, bool required,
                                                  const Constraint* text = nullptr);

}  // namespace qwench
