#include "cli/sampling_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "cli/command_line.h"
#include "engine/sampling_options.h"

namespace qwench::cli {
namespace {

std::pair<TokenId, float> parse_bias(const std::string& text) {
  TokenId id = 0;
  float bias = 0;
  const char* end = text.data() + text.size();
  const auto [separator, id_error] = std::from_chars(text.data(), end, id);
  if (id_error == std::errc{} && separator != end && *separator == '=') {
    const auto [rest, bias_error] = std::from_chars(separator + 1, end, bias);
    if (bias_error == std::errc{} && rest == end) return {id, bias};
  }
  throw UsageError(fmt::format("--logit-bias {}: expected ID=BIAS, e.g. 42=-1.5", text));
}

}  // namespace

void SamplingFlags::add_to(CommandLine& line) {
  const std::string group = "Sampling (over the model's generation_config.json)";
  const auto add = [&](const std::string& names, auto& member, const std::string& help) {
    return line.add_option(names, member, help).group(group);
  };
  add("--temp,--temperature", sampling_.temperature, "0 is greedy").value_name("X");
  add("--top-k", sampling_.top_k, "keep the k best; 0 keeps all").value_name("K").whole_number();
  add("--top-p", sampling_.top_p, "keep the smallest set that reaches this probability").value_name("X");
  add("--min-p", sampling_.min_p, "keep what has this share of the best one's probability").value_name("X");
  add("--repetition-penalty", sampling_.repetition_penalty, "on tokens of prompt and answer; 1 is off")
      .value_name("X");
  add("--presence-penalty", sampling_.presence_penalty, "on tokens of the answer, once each; -2 to 2")
      .value_name("X");
  add("--frequency-penalty", sampling_.frequency_penalty, "on tokens of the answer, each time; -2 to 2")
      .value_name("X");
  add("--logit-bias", logit_bias_, "added to a token's logit; may be repeated")
      .value_name("ID=X")
      .repeatable();
  add("-s,--seed", sampling_.seed, "same seed, same text").value_name("N").whole_number();

  const std::string stop_group = "End of the answer";
  const auto add_stop = [&](const std::string& names, auto& member, const std::string& help) {
    return line.add_option(names, member, help).group(stop_group);
  };
  add_stop("-n,--max-tokens", stop_.max_tokens,
           "at most so many tokens; -1: what generation_config.json says, else what the context holds")
      .value_name("N")
      .whole_number(true);
  add_stop("--min-tokens", stop_.min_tokens, "at least so many tokens").value_name("N").whole_number();
  add_stop("--stop", stop_.stop, "end before this text; may be repeated").value_name("TEXT").repeatable();
  add_stop("--stop-token-ids", stop_.stop_token_ids, "end at these tokens too")
      .value_name("ID,...")
      .separated_by(',')
      .repeatable();
  line.add_flag("--ignore-eos", stop_.ignore_eos, "the model's own stop tokens do not end the answer")
      .group(stop_group);
}

void SamplingFlags::finish() {
  if (!logit_bias_.empty()) {
    sampling_.logit_bias.emplace();
    for (const std::string& text : logit_bias_) sampling_.logit_bias->push_back(parse_bias(text));
  }
  sampling_.resolve();
  check(stop_);
}

}  // namespace qwench::cli
