#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/pooling_flag.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "engine/embedding.h"
#include "qwench/engine.h"

namespace qwench::cli {
namespace {

struct EmbedOptions {
  ModelFlags model;
  std::vector<std::string> texts;
  std::string pooling;
  int dimensions = 0;
  bool jsonl = false;
};

std::optional<Pooling> default_pooling(const EmbedOptions& options, const Engine& engine) {
  const std::optional<Pooling> named = pooling_flag(options.pooling);
  return named ? named : engine.info().pooling;
}

Json embedding_json(const Result& result, int dimensions) {
  if (!result.error.empty()) throw Error(ErrorKind::invalid_argument, result.error);
  return {{"embedding", unit_vector(result.embedding, dimensions)},
          {"prompt_tokens", result.usage.prompt_tokens}};
}

Request request_of(std::vector<TokenId> ids, Pooling pooling) {
  Request request;
  request.ids = std::move(ids);
  request.embedding = pooling;
  return request;
}

/// One batch of all texts; a line for each, in their order. One that is no good ends the command.
void embed_texts(Engine& engine, const std::vector<std::string>& texts, Pooling pooling, int dimensions) {
  std::vector<Request> requests;
  for (const std::string& text : texts) {
    requests.push_back(request_of(engine.encode(text), pooling));
    try {
      engine.check(requests.back());
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("text {}: {}", requests.size(), error.what()));
    }
  }
  std::vector<Json> lines;
  for (const Result& result : engine.generate(requests)) {
    Json line{{"index", lines.size()}};
    line.update(embedding_json(result, dimensions));
    lines.push_back(std::move(line));
  }
  for (const Json& line : lines) print(to_line(line) + "\n");
}

Json answer_line(Engine& engine, const Json& line, Pooling pooling, int dimensions) {
  check_fields(line, {"text", "ids"});
  if ((find(line, "text") == nullptr) == (find(line, "ids") == nullptr))
    throw Error(ErrorKind::invalid_argument, "expected either \"text\" or \"ids\"");
  const Request request = request_of(
      find(line, "text") != nullptr ? engine.encode(string_field(line, "text")) : ids_field(line, "ids"),
      pooling);
  engine.check(request);
  return embedding_json(engine.generate(std::span(&request, 1)).front(), dimensions);
}

std::vector<std::string> lines_of(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

int embed_command(const Arguments& arguments) {
  CommandLine line(
      "embed",
      "Vectors of texts, at length 1: of each argument, or of each line of standard input. Prints "
      "a line of JSON for each: {\"index\", \"embedding\", \"prompt_tokens\"}.",
      "  qwench embed ~/models/Qwen3-Embedding-0.6B \"The sky is blue.\" \"Rain falls.\"\n"
      "  qwench embed model.gguf --pooling mean --dimensions 256 < lines.txt\n");
  EmbedOptions options;
  options.model.add_to(line, ModelFlags::Default::none, true);
  line.add_rest("TEXT", options.texts, "the texts; lines of standard input when absent");
  line.add_option(
          "--pooling", options.pooling,
          "mean or last: the average over all tokens, or the last one's; as the model's files say when "
          "absent, else mean")
      .value_name("KIND");
  const Option dimensions = line.add_option("--dimensions", options.dimensions,
                                            "so many elements, the first ones: for models trained for it")
                                .value_name("N")
                                .whole_number();
  line.add_flag("--jsonl", options.jsonl,
                "lines of {\"text\"} or {\"ids\"} in, lines of {\"embedding\", \"prompt_tokens\"} out");
  line.takes_text();
  if (!line.parse(arguments)) return 0;
  TextSource first;  // an argument before the others that names no model
  options.model.finish(&first);
  if (first.positional()) options.texts.insert(options.texts.begin(), *first.positional());
  if (options.jsonl && !options.texts.empty())
    throw UsageError("--jsonl reads lines from standard input; give no text");
  if (dimensions.given() && options.dimensions < 1)
    throw UsageError(fmt::format("--dimensions {}: expected 1 or more", options.dimensions));
  (void)pooling_flag(options.pooling);  // before the model is loaded

  if (!options.jsonl && options.texts.empty()) options.texts = lines_of(std::cin);
  if (!options.jsonl && options.texts.empty())
    throw UsageError("there is no text; give some as arguments, or lines of standard input");
  for (std::string& text : options.texts) {
    if (text.empty()) throw UsageError("one of the texts is empty, which says nothing to a model");
    text = well_formed(text);
  }
  const std::unique_ptr<Engine> engine = options.model.load();
  const ModelInfo& info = engine->info();
  if (options.dimensions > info.embedding_size)
    throw UsageError(fmt::format("--dimensions {}: the model's vectors have {} elements", options.dimensions,
                                 info.embedding_size));
  const std::optional<Pooling> pooling = default_pooling(options, *engine);
  if (!pooling)
    throw UsageError("the model's files ask for a pooling that is not supported; say --pooling mean or last");
  if (!options.jsonl) {
    embed_texts(*engine, options.texts, *pooling, options.dimensions);
  } else {
    answer_lines(std::cin, [&](const Json& request) {
      return answer_line(*engine, request, *pooling, options.dimensions);
    });
  }
  return 0;
}

}  // namespace qwench::cli
