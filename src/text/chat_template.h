#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "text/byte_span.h"
#include "text/jinja/error.h"
#include "text/jinja/limits.h"
#include "text/jinja/runtime.h"

namespace qwench {

/// A conversation as the model reads it.
struct RenderedPrompt {
  std::string text;
  /// Sorted, disjoint byte ranges of `text` that came from the template alone (and from bos_token, eos_token,
  /// which the model's files give): only there may special tokens be recognised. All else came from the
  /// messages, tools, documents or kwargs.
  std::vector<ByteSpan> trusted;
  /// What the template's {% generation %} blocks wrote, in the order in which they ended.
  std::vector<ByteSpan> assistant_spans;
};

/// What a template is rendered with. Its variables are `messages`, `tools`, `documents` (none when null),
/// `add_generation_prompt`, `bos_token` and `eos_token` (undefined when not given), and the members of
/// `kwargs`, such as enable_thinking.
struct ChatTemplateInput {
  Json messages = Json::array();
  Json tools;
  Json documents;
  bool add_generation_prompt = false;
  Json kwargs = Json::object();  ///< may override bos_token and eos_token, not the other four
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<LocalTime> now;  ///< what strftime_now() reads; the local time now, when not given
};

/// A model's own chat template: Jinja in an interpreter with budgets, equal in its results to Jinja 3.1.6's
/// sandboxed environment as Hugging Face transformers sets it up (trim_blocks, lstrip_blocks, break and
/// continue, the generation tag, tojson, raise_exception, strftime_now). Messages reach the template as they
/// are: unlike apply_chat_template of transformers 5, which drops keys that are null and copies `reasoning`
/// to `reasoning_content`; and whether an empty conversation can be rendered is the template's to say. Not
/// supported, and refused with a sentence: other templates (include, import, extends), byte strings, complex
/// numbers, random choice. Immutable; may be rendered by several threads at once.
class ChatTemplate {
 public:
  /// Parses `source`; `what` names it in errors, e.g. "chat_template.jinja". Throws TemplateError.
  static ChatTemplate parse(std::string source, std::string what);

  /// Throws TemplateError with the place in the template; Error (invalid_argument) when kwargs is no object
  /// or names one of the fixed variables.
  RenderedPrompt render(const ChatTemplateInput& input, const RenderLimits& limits = {}) const;

  const std::string& source() const;
  const std::string& name() const;
  /// Does it read this variable anywhere before it assigns it?
  bool reads(const std::string& variable) const;

 private:
  struct Parsed;
  explicit ChatTemplate(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

/// The templates of one model, by name: "default", and others such as "tool_use" or "rag".
class ChatTemplates {
 public:
  /// Adds or replaces one. It is parsed when it is selected, so that a broken one that nobody asks for does
  /// no harm.
  void add(const std::string& name, std::string source, std::string what);

  bool empty() const { return sources_.empty(); }
  std::vector<std::string> names() const;

  /// The template called `name`; without a name, "tool_use" where there are tools and such a template, else
  /// "default". Throws Error (not_found) that lists the names there are, TemplateError when it cannot be
  /// parsed.
  ChatTemplate select(const std::optional<std::string>& name, bool has_tools) const;

  /// From a model's folder: `chat_template` in tokenizer_config.json (a text, or a list of {name, template}),
  /// which chat_template.jinja and additional_chat_templates/NAME.jinja (or chat_templates/NAME.jinja)
  /// override. Empty when there is none. Throws Error (malformed) on fields of the wrong type.
  static ChatTemplates from_folder(const std::filesystem::path& folder);

  /// From a tokenizer_config.json that is already read; `what` names it in errors.
  static ChatTemplates from_tokenizer_config(const Json& config, const std::string& what);

  /// From the string metadata of a GGUF file: tokenizer.chat_template, and tokenizer.chat_template.NAME.
  static ChatTemplates from_gguf(const std::map<std::string, std::string>& strings, const std::string& what);

 private:
  struct Source {
    std::string text;
    std::string what;
  };
  std::map<std::string, Source> sources_;
};

}  // namespace qwench
