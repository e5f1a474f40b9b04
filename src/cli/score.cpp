#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <numeric>

#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "qwench/engine.h"

namespace qwench::cli {
namespace {

Json score_json(const Score& score) {
  Json top = Json::array();
  for (const auto& [id, logprob] : score.top) top.push_back({id, logprob});
  return {{"logprobs", score.logprobs}, {"top", std::move(top)}};
}

int score_text(Engine& engine, const std::string& text) {
  const std::vector<TokenId> ids = engine.encode(text);
  const Score score = engine.score(ids, 0);
  if (score.logprobs.empty())
    throw Error(ErrorKind::invalid_argument, "a text of at least two tokens is needed");
  const double sum = std::accumulate(score.logprobs.begin(), score.logprobs.end(), 0.0);
  const double mean = -sum / static_cast<double>(score.logprobs.size());
  print(fmt::format("{} scored, mean negative log-likelihood {:.4f}, perplexity {:.3f}\n",
                    plural(static_cast<int64_t>(score.logprobs.size()), "token"), mean, std::exp(mean)));
  return 0;
}

}  // namespace

int score_command(const Arguments& arguments) {
  CommandLine line("score", "Log-probabilities that a model gives to a text, and its perplexity.",
                   "  qwench score ~/models/Qwen3-0.6B -f chapter.txt\n"
                   "  echo '{\"ids\": [9707, 11, 1879]}' | qwench score model.gguf --jsonl\n");
  ModelFlags model;
  TextSource source;
  bool jsonl = false;
  int top = 10;
  model.keep_exact_cells();
  model.add_to(line, ModelFlags::Default::none, true);
  source.add_to(line, "TEXT", "the text");
  line.add_flag("--jsonl", jsonl, "lines of {\"ids\"} in, lines of {\"logprobs\", \"top\"} out");
  const Option top_option = line.add_option("--top", top, "with --jsonl: best next tokens after the last id")
                                .value_name("K")
                                .whole_number()
                                .show_default();
  if (!line.parse(arguments)) return 0;
  model.finish(&source);
  if (jsonl && source.given()) throw UsageError("--jsonl reads lines from standard input; give no text");
  if (!jsonl && top_option.given()) throw UsageError("--top needs --jsonl");
  if (top < 0) throw UsageError(fmt::format("--top {}: expected 0 or more", top));

  const std::string text = jsonl ? "" : source.read_some(false);
  const std::unique_ptr<Engine> engine = model.load();
  if (!jsonl) return score_text(*engine, text);
  top = std::min(top, engine->info().vocab_size);
  answer_lines(std::cin, [&](const Json& request) {
    check_fields(request, {"ids"});
    return score_json(engine->score(ids_field(request, "ids"), top));
  });
  return 0;
}

}  // namespace qwench::cli
