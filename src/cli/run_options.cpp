#include "cli/run_options.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "grammar/grammar_cache.h"

namespace qwench::cli {

void RunOptions::add_to(CommandLine& line) {
  model.add_to(line, ModelFlags::Default::search, true);
  model.add_speculation_to(line);
  source.add_to(line, "PROMPT", "what to answer");
  line.add_option("--system", system, "a system message before the prompt").value_name("TEXT");
  line.add_flag("--raw", raw, "send the prompt as it is, without the model's chat template");
  line.add_flag("--hide-thinking", hide_thinking, "do not show reasoning (<think> blocks)");
  line.add_flag("--json", json, "one JSON object on stdout instead of streamed text");
  line.add_flag("--jsonl", jsonl,
                "lines of {\"prompt\" | \"messages\" | \"ids\", ...} on standard input, answered in one "
                "batch: see docs/cli.md");
  line.add_option("--logprobs", logprobs,
                  "with --json, --jsonl: log-probabilities and so many alternatives, 0 to 20")
      .value_name("N")
      .whole_number();
  const std::string group = "What the answer must be";
  line.add_option("--json-schema", json_schema_, "JSON that is valid under this schema, a file or its text")
      .value_name("FILE|TEXT")
      .group(group);
  line.add_option("--regex", regex_, "a text that this pattern matches as a whole")
      .value_name("PATTERN")
      .group(group);
  line.add_option("--grammar", grammar_, "a text of this grammar, in llama.cpp's notation (GBNF)")
      .value_name("FILE|TEXT")
      .group(group);
  line.add_flag("-q,--quiet", quiet, "nothing but errors on stderr");
  templates.add_to(line);
  sampling.add_to(line);
}

namespace {

// The text of a constraint that is given itself or by its file's name: what is no text by
// its look is a name.
std::string text_or_file(const std::string& value, bool is_text, const char* flag, const char* what) {
  std::error_code none;
  if (value.size() < 4096 && std::filesystem::is_regular_file(value, none)) return read_text_argument(value);
  if (is_text) return value;
  throw UsageError(fmt::format("{} {}: there is no such file, and it is no {} itself", flag,
                               printable(std::string_view(value).substr(0, 100)), what));
}

bool looks_like_schema(std::string_view text) {
  const size_t at = text.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return false;
  text.remove_prefix(at);
  return text.starts_with('{') || text == "true" || text == "false";
}

}  // namespace

void RunOptions::finish() {
  sampling.finish();
  templates.finish();
  model.finish(&source);
  if (json_schema_.has_value() + regex_.has_value() + grammar_.has_value() > 1)
    throw UsageError("only one of --json-schema, --regex and --grammar may be given");
  if (json_schema_)
    constraint = Constraint{.kind = Constraint::Kind::json_schema,
                            .text = text_or_file(*json_schema_, looks_like_schema(*json_schema_),
                                                 "--json-schema", "JSON schema")};
  if (regex_) constraint = Constraint{.kind = Constraint::Kind::regex, .text = *regex_};
  if (grammar_)
    constraint = Constraint{
        .kind = Constraint::Kind::grammar,
        .text = text_or_file(*grammar_, grammar_->find("::=") != std::string::npos, "--grammar", "grammar")};
  if (constraint) compile_constraint(*constraint);  // what is wrong with it is found before a model is loaded
  const auto exclude = [](bool a, bool b, const char* message) {
    if (a && b) throw UsageError(message);
  };
  exclude(jsonl, source.given(), "--jsonl reads lines from standard input; give no prompt");
  exclude(jsonl, json, "--json and --jsonl exclude each other");
  exclude(
      jsonl, raw,
      "--raw does not go with --jsonl: \"prompt\" is sent as it is, \"messages\" go through the template");
  exclude(jsonl, !system.empty(),
          "--system does not go with --jsonl: put a system message into \"messages\"");
  exclude(jsonl || json, hide_thinking, "--hide-thinking is for text; JSON holds all of it");
  exclude(raw, !system.empty(), "--raw uses no chat template, so --system has no place");
  exclude(raw, templates.given(),
          "--raw uses no chat template, so --think, --no-think, --kwargs and --template-name mean nothing");
  exclude(model.verbose(), quiet, "--verbose and --quiet exclude each other");
  exclude(!json && !jsonl, logprobs.has_value(), "--logprobs needs --json or --jsonl");
  if (logprobs && (*logprobs < 0 || *logprobs > 20))
    throw UsageError(fmt::format("--logprobs {}: expected 0 to 20", *logprobs));
}

}  // namespace qwench::cli
