#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/tool_syntax.h"

namespace qwench {

/// A tool that a request declares, as far as reading calls needs it.
struct ToolDeclaration {
  std::string name;
  Json parameters;  ///< JSON Schema of its arguments; null when there is none
  /// The model is held to the schema where it calls as compile_tool_calls() has it: what is written in other
  /// ways is no call of the tool. Without the tags that is {"name": ..., "arguments": ...} in this order, of
  /// Hermes's form.
  bool held_to_schema = false;
};

/// What a piece of a model's text adds to its message.
struct ToolTextPart {
  enum class Kind {
    content,    ///< text of the message
    call,       ///< a call begins: `text` is the tool's name
    arguments,  ///< `text` continues the JSON text of the call's arguments
  };
  Kind kind = Kind::content;
  int call = -1;  ///< which call of the message, from 0; -1 for content
  std::string text;

  friend bool operator==(const ToolTextPart&, const ToolTextPart&) = default;
};

struct ToolCallOptions {
  ToolSyntax syntax = ToolSyntax::hermes;
  std::vector<ToolDeclaration> tools;
  bool parallel = true;  ///< without, calls behind the first are dropped
  /// The message is either calls, each in its tags and the first at the very beginning, or content alone,
  /// whatever that looks like.
  bool calls_or_content = false;
  bool calls_only = false;  ///< the message is calls in their tags, or what was cut of them, and no content
};

class ToolCallBlock;
class ToolPartWriter;

/// Tells calls of tools from the text around them, as the text appears. Give it the answer alone, without its
/// reasoning. How the text was chopped into pieces changes only where parts of one kind are split; the parts
/// of each call and of the content, joined, are always the same. Parts hold whole characters where the text
/// does.
///
/// - Hermes: a call's arguments are the model's own JSON text of "arguments" (or "parameters"), which may
/// also
///   be a string that holds it; {} where there are none. Line breaks and other control characters, which
///   JSON's strings must not hold as they are, are escaped. Where the message begins with such an object,
///   alone or fenced as JSON, whose name is a declared tool's, the tag may be missing: small models forget
///   it.
/// - Qwen3-Coder: arguments become JSON by the declared types, as its own parser (qwen3coder_tool_parser.py)
///   does it: a string as it is, "null" null, anything else as JSON; what is no JSON of that type is a
///   string.
/// - What does not read as a call is content, to the last byte: so is a block that the model ends before its
///   arguments begin. Where the text was cut there instead, it is a call without arguments, or nothing while
///   its name is not known. Once they have begun they cannot be taken back: arguments that then are no JSON
///   come as the model wrote them, and those of a text that was cut as far as they came.
/// - Whitespace beside a call is no content.
///
/// For one thread at a time.
class ToolCallParser {
 public:
  explicit ToolCallParser(ToolCallOptions options);
  ~ToolCallParser();
  ToolCallParser(ToolCallParser&&) noexcept;
  ToolCallParser& operator=(ToolCallParser&&) noexcept;

  std::vector<ToolTextPart> push(std::string_view text);
  /// The text has ended; `cut`: not where the model ended it, but by a limit or a stop string.
  std::vector<ToolTextPart> finish(bool cut = false);

  int calls() const;  ///< that have begun
  bool open() const;  ///< the last call that has begun has not ended

 private:
  void read();
  void read_content(char c);
  bool opens(std::string_view text, bool whole) const;
  void refuse_block();

  std::unique_ptr<const ToolCallOptions> options_;  // which blocks look at
  std::unique_ptr<ToolPartWriter> writer_;
  std::unique_ptr<ToolCallBlock> block_;  // of calls, where the text is inside one
  std::string input_;                     // not yet read
  std::string tag_;                       // read, and may begin a block
};

/// A whole message.
struct ToolCall {
  std::string name;
  std::string arguments;  ///< JSON text, unless the model broke it
};
struct ToolMessage {
  std::string content;
  std::vector<ToolCall> calls;
  bool open = false;  ///< the last call is not complete
};
ToolMessage parse_tool_calls(const ToolCallOptions& options, std::string_view text, bool cut = false);

/// How a model with this chat template writes calls; absent when the template does not show tools.
std::optional<ToolSyntax> tool_syntax(const ChatTemplate& chat_template);

/// Whether this tokenizer flags the tags of calls as special tokens, so that a text without those has no
/// calls.
bool flags_tool_tags_special(const Tokenizer& tokenizer);

}  // namespace qwench
