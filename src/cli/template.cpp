#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <optional>

#include "cli/chat_input.h"
#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "core/large_integers.h"
#include "core/mapped_file.h"
#include "engine/model_text.h"

namespace qwench::cli {
namespace {

struct TemplateOptions {
  std::string template_file;
  bool generation_prompt = false;
  bool ids = false;
  bool jsonl = false;
};

/// A model's tokenizer and templates, or a template from a file, or the one with the other.
class Renderer {
 public:
  Renderer(std::optional<ModelText> text, const std::string& file, std::optional<std::string> name)
      : text_(std::move(text)), file_(file), name_(std::move(name)) {
    if (!file_.empty()) source_ = read_text_file(file_);
  }

  RenderedPrompt render(ChatTemplateInput input) {
    if (file_.empty()) return text_->render(std::move(input), name_);
    // Parsed with the first request, so that a broken template is each request's error.
    if (!file_template_) file_template_ = ChatTemplate::parse(source_, file_);
    if (text_ && text_->tokenizer()) {
      const Tokenizer& tokenizer = *text_->tokenizer();
      if (!input.bos_token && tokenizer.bos()) input.bos_token = tokenizer.token_text(*tokenizer.bos());
      if (!input.eos_token && tokenizer.eos()) input.eos_token = tokenizer.token_text(*tokenizer.eos());
    }
    return file_template_->render(input);
  }

  std::vector<TokenId> encode(const RenderedPrompt& prompt) const { return text_->encode(prompt); }

 private:
  std::optional<ModelText> text_;
  std::string file_;
  std::string source_;
  std::optional<std::string> name_;
  std::optional<ChatTemplate> file_template_;
};

ChatTemplateInput read_input(const Json& object, const TemplateFlags& flags, bool generation_prompt) {
  ChatTemplateInput input;
  input.add_generation_prompt = generation_prompt;
  input.kwargs = flags.kwargs();
  if (find(object, "messages") == nullptr)
    throw Error(ErrorKind::invalid_argument, "the field \"messages\" is missing");
  for (const auto& [name, value] : object.items()) {
    if (!read_chat_field(name, value, input)) {
      check_fields(object, kChatFields);
    }
  }
  return input;
}

}  // namespace

int template_command(const Arguments& arguments) {
  CommandLine line(
      "template", "Renders messages through a chat template: the model's own, or one from a file.",
      "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' | qwench template ~/models/Qwen3-0.6B -g\n"
      "  qwench template model.gguf -f request.json --no-think\n"
      "  qwench template --template my.jinja --jsonl < requests.jsonl\n");
  ModelFlags model;
  TextSource source;
  TemplateFlags templates;
  TemplateOptions options;
  model.add_to(line, ModelFlags::Default::optional, false);
  source.add_to(line, "JSON", "messages, as an array or as an object with the fields of a --jsonl line");
  line.add_option("--template", options.template_file,
                  "a Jinja template, instead of the model's; no model is needed then")
      .value_name("FILE");
  templates.add_to(line);
  line.add_flag("-g,--generation-prompt", options.generation_prompt,
                "end with the opening of the answer (add_generation_prompt)");
  line.add_flag("--ids", options.ids, "the token ids too");
  line.add_flag(
      "--jsonl", options.jsonl,
      "lines of {\"messages\", \"tools\"?, \"documents\"?, \"add_generation_prompt\"?, \"kwargs\"?, "
      "\"bos_token\"?, "
      "\"eos_token\"?, \"now\"?} in, lines of {\"text\", \"ids\"?} or {\"error\"} out");
  if (!line.parse(arguments)) return 0;
  model.finish(&source);
  templates.finish();
  if (options.jsonl && source.given())
    throw UsageError("--jsonl reads lines from standard input; give no messages");
  if (model.path().empty() && options.template_file.empty())
    throw UsageError("name a model, or a template with --template FILE");
  if (!options.template_file.empty() && templates.name())
    throw UsageError("--template and --template-name exclude each other");
  if (options.ids && model.path().empty()) throw UsageError("--ids needs a model, for its tokenizer");

  std::optional<ModelText> text;
  if (!model.path().empty()) text = ModelText::from_path(model.path());
  Renderer renderer(std::move(text), options.template_file, templates.name());
  if (options.jsonl) {
    answer_lines(std::cin, [&](const Json& request) {
      const RenderedPrompt prompt =
          renderer.render(read_input(request, templates, options.generation_prompt));
      Json answer{{"text", prompt.text}};
      if (options.ids) answer["ids"] = renderer.encode(prompt);
      return answer;
    });
    return 0;
  }
  Json request = parse_json_exactly(source.read(false), "messages");
  if (request.is_array()) request = Json{{"messages", std::move(request)}};
  if (!request.is_object())
    throw Error(ErrorKind::malformed, "messages: expected an array of messages, or an object with them");
  const RenderedPrompt prompt = renderer.render(read_input(request, templates, options.generation_prompt));
  print(is_terminal(stdout) ? harmless(prompt.text) : prompt.text);
  if (options.ids || is_terminal(stdout)) print("\n");
  if (options.ids) print(fmt::format("{}\n", fmt::join(renderer.encode(prompt), " ")));
  return 0;
}

}  // namespace qwench::cli
