#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/subject_flags.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "engine/model_text.h"
#include "verify/perplexity.h"

namespace qwench::cli {
namespace {

// Longer windows cost more and change little.
constexpr int64_t kDefaultContext = 2048;

struct WindowFlags {
  std::string file;
  std::optional<int> context;
  std::optional<int> stride;
  bool ids = false;
  bool json = false;

  void add_to(CommandLine& line) {
    line.add_option("FILE", file, "the text; - is standard input").value_name("").required();
    line.add_option("-c,--ctx", context,
                    "tokens of a window (default 2048, or the model's limit or the text's length if less)")
        .value_name("N")
        .whole_number();
    line.add_option("--stride", stride, "tokens from one window to the next (default: half a window)")
        .value_name("N")
        .whole_number();
    line.add_flag("--ids", ids, "FILE holds token ids, parted by spaces or commas");
    line.add_flag("--json", json, "one JSON object on stdout");
  }

  void check() const {
    if (context && *context < 2) throw UsageError(fmt::format("--ctx {}: expected 2 or more", *context));
    if (stride && *stride < 1) throw UsageError(fmt::format("--stride {}: expected 1 or more", *stride));
  }

  std::vector<TokenId> encode(const std::string& text, const Checkpoint& checkpoint) const {
    return ids ? parse_ids(text) : ModelText::open(checkpoint).encode(text);
  }
};

struct Window {
  int64_t context;
  int64_t stride;
};

Window window_of(const WindowFlags& flags, int64_t limit, size_t length) {
  if (length < 2) throw Error(ErrorKind::invalid_argument, "a text of at least two tokens is needed");
  if (flags.context && *flags.context > limit) {
    throw UsageError(fmt::format("--ctx {}: the model's limit is {}", *flags.context, limit));
  }
  const int64_t most = std::min<int64_t>(limit, static_cast<int64_t>(length));
  const int64_t context = std::min<int64_t>(flags.context.value_or(kDefaultContext), most);
  const int64_t stride = flags.stride.value_or(std::max<int64_t>(1, context / 2));
  if (stride > std::max<int64_t>(context, flags.context.value_or(0)))
    throw UsageError(fmt::format("--stride {}: expected at most the window's {}", stride, context));
  return {context, std::min(stride, context)};
}

SubjectOptions sized(SubjectOptions options, const Window& window) {
  options.positions = static_cast<int>(window.context);
  options.max_rows = std::min(options.positions, 512);
  return options;
}

}  // namespace

int perplexity_command(const Arguments& arguments) {
  CommandLine line(
      "perplexity",
      "How well a model predicts a text: exp of the mean negative log-likelihood of its tokens, each "
      "with at least half a window of context.",
      "  qwench perplexity ~/models/Qwen3-0.6B chapter.txt\n"
      "  qwench perplexity model.gguf chapter.txt --ctx 512 --stride 256 --json\n");
  ModelFlags model;
  WindowFlags flags;
  model.keep_exact_cells();
  model.add_to(line, ModelFlags::Default::none, false);
  flags.add_to(line);
  model.add_computing_to(line);
  if (!line.parse(arguments)) return 0;
  flags.check();
  model.finish();
  const auto checkpoint = Checkpoint::open(model.path());
  const std::vector<TokenId> ids = flags.encode(read_text_argument(flags.file), *checkpoint);
  const Window window = window_of(flags, checkpoint->config().max_position, ids.size());
  const SubjectOptions options = sized(subject_options(model.options()), window);
  const auto subject = load_subject(checkpoint, options);
  subject->check_vocabulary(ids);
  std::fputs((banner(*subject, model.path(), options) + "\n").c_str(), stderr);

  StatusLine status;
  const Perplexity result = measure_perplexity(
      *subject, ids, window.context, window.stride, [&](const Perplexity& now, double share) {
        status.update(
            fmt::format("{} {:.4f} after {} tokens", progress_bar(share), now.perplexity(), now.scored));
      });
  status.clear();
  if (flags.json) {
    print(to_line({{"model", model.path().filename().string()},
                   {"tokens", ids.size()},
                   {"scored", result.scored},
                   {"context", window.context},
                   {"stride", window.stride},
                   {"mean_nll", result.mean_nll},
                   {"standard_error", result.standard_error},
                   {"perplexity", result.perplexity()}}) +
          "\n");
    return 0;
  }
  print(fmt::format(
      "perplexity {:.4f} +- {:.4f}\nmean negative log-likelihood {:.6f} +- {:.6f} over {} tokens\n"
      "windows of {} tokens, {} apart\n",
      result.perplexity(), result.perplexity() * result.standard_error, result.mean_nll,
      result.standard_error, result.scored, window.context, window.stride));
  return 0;
}

int compare_command(const Arguments& arguments) {
  CommandLine line(
      "compare",
      "How far the predictions of model B lie from those of model A on a text: KL(A || B) in nats, how often "
      "both find the same token the most probable, and both perplexities.",
      "  qwench compare ~/models/Qwen3-0.6B model.gguf chapter.txt\n"
      "  qwench compare ~/models/Qwen3-0.6B ~/models/Qwen3-0.6B chapter.txt --dtype-a f32 --dtype-b bf16\n");
  std::string name_a;
  std::string name_b;
  std::string dtype_a;
  std::string dtype_b;
  std::string kv_a;
  std::string kv_b;
  int threads = 0;
  WindowFlags flags;
  line.add_option("A", name_a, "checkpoint folder or .gguf file").value_name("").required();
  line.add_option("B", name_b, "the one that is compared with it; may be the same").value_name("").required();
  flags.add_to(line);
  line.add_option("--dtype-a", dtype_a,
                  "keep A's weights as f32, f16, bf16, q8_0, q4_0 or q4_k; as stored when absent")
      .value_name("TYPE");
  line.add_option("--dtype-b", dtype_b, "keep B's weights so").value_name("TYPE");
  line.add_option("--kv-dtype-a", kv_a, "cells of A's KV cache: f32 (default), f16, bf16 or q8_0")
      .value_name("TYPE");
  line.add_option("--kv-dtype-b", kv_b, "cells of B's").value_name("TYPE");
  line.add_option("-t,--threads", threads, "0: the cores this process may use")
      .value_name("N")
      .whole_number();
  if (!line.parse(arguments)) return 0;
  flags.check();
  SubjectOptions options_a;
  SubjectOptions options_b;
  options_a.threads = options_b.threads = threads;
  if (!dtype_a.empty()) options_a.dtype = parse_weight_type("--dtype-a", dtype_a);
  if (!dtype_b.empty()) options_b.dtype = parse_weight_type("--dtype-b", dtype_b);
  if (!kv_a.empty()) options_a.kv_dtype = parse_kv_dtype("--kv-dtype-a", kv_a);
  if (!kv_b.empty()) options_b.kv_dtype = parse_kv_dtype("--kv-dtype-b", kv_b);
  const std::filesystem::path path_a = find_model(name_a);
  const std::filesystem::path path_b = find_model(name_b);

  const auto checkpoint_a = Checkpoint::open(path_a);
  const auto checkpoint_b = Checkpoint::open(path_b);
  const std::string text = read_text_argument(flags.file);
  const std::vector<TokenId> ids = flags.encode(text, *checkpoint_a);
  if (!flags.ids && ModelText::open(*checkpoint_b).tokenizer() && flags.encode(text, *checkpoint_b) != ids) {
    throw Error(
        ErrorKind::invalid_argument,
        "the two models' tokenizers make different tokens of this text, so their predictions cannot be "
        "compared");
  }
  const Window window = window_of(
      flags, std::min(checkpoint_a->config().max_position, checkpoint_b->config().max_position), ids.size());
  options_a = sized(options_a, window);
  options_b = sized(options_b, window);
  const auto a = load_subject(checkpoint_a, options_a);
  const auto b = load_subject(checkpoint_b, options_b);
  check_comparable(*a, *b);
  a->check_vocabulary(ids);
  std::fputs((banner(*a, path_a, options_a) + "\n" + banner(*b, path_b, options_b) + "\n").c_str(), stderr);

  StatusLine status;
  const Divergence::Summary d =
      compare_models(*a, *b, ids, window.context, window.stride, [&](const Divergence& now, double share) {
        status.update(fmt::format("{} KL {:.4e} after {} tokens", progress_bar(share), now.running_mean(),
                                  now.positions()));
      });
  status.clear();
  if (flags.json) {
    print(to_line({{"a", path_a.filename().string()},
                   {"b", path_b.filename().string()},
                   {"positions", d.positions},
                   {"context", window.context},
                   {"stride", window.stride},
                   {"kl_mean", d.mean},
                   {"kl_median", d.median},
                   {"kl_99", d.percentile_99},
                   {"kl_max", d.max},
                   {"top1_agreement", d.top1_agreement},
                   {"mean_nll_a", d.nll_a},
                   {"mean_nll_b", d.nll_b},
                   {"perplexity_a", d.perplexity_a()},
                   {"perplexity_b", d.perplexity_b()}}) +
          "\n");
    return 0;
  }
  print(
      fmt::format("KL(A || B)       mean {:.3e}, median {:.3e}, 99 % {:.3e}, max {:.3e} nats\n"
                  "top-1 agreement  {:.2f} % of {} positions\n"
                  "perplexity       A {:.4f}, B {:.4f}, difference {:+.4f} ({:+.3f} %)\n",
                  d.mean, d.median, d.percentile_99, d.max, 100 * d.top1_agreement, d.positions,
                  d.perplexity_a(), d.perplexity_b(), d.perplexity_b() - d.perplexity_a(),
                  100 * (d.perplexity_b() / d.perplexity_a() - 1)));
  return 0;
}

}  // namespace qwench::cli
