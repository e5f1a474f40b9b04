#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "cli/command_line.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/operation_table.h"
#include "cli/subject_flags.h"
#include "cli/terminal.h"
#include "cli/text_source.h"
#include "engine/model_plan.h"
#include "engine/model_text.h"
#include "text/detokenizer.h"
#include "verify/attention_map.h"
#include "verify/logit_lens.h"
#include "verify/trace.h"

namespace qwench::cli {
namespace {

struct TraceOptions {
  std::string ids;
  int decode = 1;
  int top_k = 0;
  bool totals = false;
  bool json = false;
  std::optional<int> lens;
  bool logit_lens = false;
  std::string attention;
  std::optional<int> layer;
  std::optional<int> head;
};

std::string token_text(const ModelText& text, TokenId id) {
  if (!text.tokenizer()) return fmt::format("{}", id);
  Detokenizer alone(text.tokenizer(), false);
  std::string piece = alone.push(id);
  return piece + alone.finish();
}

void print_lens(const std::vector<LensRow>& rows, const ModelText& text) {
  std::string table = "most probable next tokens if the model ended after each layer\n";
  for (const LensRow& row : rows) {
    table += fmt::format("{:<14}", row.place);
    for (const auto& [id, probability] : row.top)
      table +=
          fmt::format("  {} {:.3f}", printable(fmt::format("\"{}\"", token_text(text, id))), probability);
    table += "\n";
  }
  print(table);
}

Json lens_json(const std::vector<LensRow>& rows, const ModelText& text) {
  Json list = Json::array();
  for (const LensRow& row : rows) {
    Json top = Json::array();
    for (const auto& [id, probability] : row.top)
      top.push_back({{"id", id}, {"text", token_text(text, id)}, {"probability", probability}});
    list.push_back({{"place", row.place}, {"top", std::move(top)}});
  }
  return list;
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out << content;
  out.close();
  if (!out) throw Error(ErrorKind::io, fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
}

}  // namespace

int trace_command(const Arguments& arguments) {
  CommandLine line(
      "trace",
      "Shows what a pass over a prompt and the next token compute: each operation's shape, time, share "
      "of the step, bytes moved and size of its output; or what the model would say after each layer, "
      "or a picture of what a head attends to.",
      "  qwench trace ~/models/Qwen3-0.6B \"The capital of France is\"\n"
      "  qwench trace model.gguf \"The capital of France is\" --json > trace.json\n"
      "  qwench trace model.gguf \"The capital of France is\" --logit-lens\n"
      "  qwench trace model.gguf \"The cat sat on the mat\" --attention map.svg --layer 3 --head 2\n");
  ModelFlags model;
  TextSource source;
  TraceOptions options;
  model.add_to(line, ModelFlags::Default::none, false);
  source.add_to(line, "PROMPT", "the prompt, sent as it is");
  model.add_computing_to(line);
  line.add_option("--ids", options.ids, "token ids in place of a prompt").value_name("ID,...");
  line.add_option("--decode", options.decode, "greedy tokens that are traced after the prompt")
      .value_name("N")
      .whole_number()
      .show_default();
  line.add_option(
          "--top-k", options.top_k,
          "each step takes so many of the largest logits, as sampling does, not the greedy token alone")
      .value_name("K")
      .whole_number();
  line.add_flag("--totals", options.totals, "the sums over the layers alone");
  line.add_flag("--json", options.json,
                "Chrome's trace format, for Perfetto; with --logit-lens a list of places and tokens");
  line.add_flag("--logit-lens", options.logit_lens, "the most probable tokens after each layer");
  line.add_option("--top", options.lens, "with --logit-lens: how many (default 5)")
      .value_name("K")
      .whole_number();
  line.add_option("--attention", options.attention, "write a head's attention map as a picture")
      .value_name("FILE.svg");
  line.add_option("--layer", options.layer, "with --attention: the layer, from 0 (default 0)")
      .value_name("N")
      .whole_number();
  line.add_option("--head", options.head, "with --attention: the head, from 0 (default 0)")
      .value_name("N")
      .whole_number();
  if (!line.parse(arguments)) return 0;
  model.finish(&source);
  if (!options.ids.empty() && source.given()) throw UsageError("give a prompt or --ids, not both");
  if (options.lens && !options.logit_lens) throw UsageError("--top needs --logit-lens");
  if (options.lens && *options.lens < 1) throw UsageError("--top 0: expected 1 or more");
  if ((options.layer || options.head) && options.attention.empty())
    throw UsageError("--layer and --head need --attention");
  const bool traces = !options.logit_lens && options.attention.empty();
  if (!traces && options.totals) throw UsageError("--totals does not go with --logit-lens and --attention");
  if (!options.attention.empty() && options.json) throw UsageError("--json does not go with --attention");
  if (options.top_k > 0 && !traces) throw UsageError("--top-k does not go with --logit-lens and --attention");
  if (options.top_k > kMostTop)
    throw UsageError(fmt::format("--top-k {}: the most is {}", options.top_k, kMostTop));
  if (options.decode > 4096) throw UsageError(fmt::format("--decode {}: the most is 4096", options.decode));

  const auto checkpoint = Checkpoint::open(model.path());
  const ModelText text = ModelText::open(*checkpoint);
  const std::vector<TokenId> ids =
      options.ids.empty() ? text.encode(source.read(true)) : parse_ids(options.ids);
  if (ids.empty())
    throw Error(ErrorKind::invalid_argument, "the prompt is empty: at least one token is needed");
  TracingBackend* tracer = nullptr;
  SubjectOptions set_up = subject_options(model.options(), stored_type(*checkpoint));
  set_up.positions = static_cast<int>(std::min<size_t>(ids.size(), 1 << 24)) + (traces ? options.decode : 0);
  set_up.max_rows = static_cast<int>(ids.size());
  if (traces) {
    set_up.decorate = [&](std::unique_ptr<Backend> backend) {
      auto tracing = std::make_unique<TracingBackend>(std::move(backend));
      tracer = tracing.get();
      return tracing;
    };
  }
  const auto subject = load_subject(checkpoint, set_up);
  subject->check(ids);
  std::fputs((banner(*subject, model.path(), set_up) + "\n").c_str(), stderr);

  if (!options.attention.empty()) {
    const AttentionMap map =
        attention_map(*subject, ids, options.layer.value_or(0), options.head.value_or(0));
    std::vector<std::string> labels;
    labels.reserve(ids.size());
    for (const TokenId id : ids) labels.push_back(token_text(text, id));
    write_file(options.attention,
               attention_svg(map, labels,
                             fmt::format("{}, layer {}, head {}", model.path().filename().string(), map.layer,
                                         map.head)));
    std::fputs(fmt::format("qwench: wrote {}\n", printable(options.attention)).c_str(), stderr);
  }
  if (options.logit_lens) {
    const int top = std::min(options.lens.value_or(5), subject->config().vocab_size);
    const std::vector<LensRow> rows = logit_lens(*subject, ids, top);
    if (options.json) {
      print(to_line(lens_json(rows, text)) + "\n");
    } else {
      print_lens(rows, text);
    }
  }
  if (!traces) return 0;
  const std::vector<TraceStep> steps = trace_steps(*subject, *tracer, ids, options.decode, true,
                                                   std::min(options.top_k, subject->config().vocab_size));
  if (options.json) {
    print(to_line(chrome_trace(steps, model.path().filename().string())) + "\n");
    return 0;
  }
  for (size_t i = 0; i < steps.size(); ++i)
    print((i == 0 ? "" : "\n") + operation_table(steps[i], options.totals));
  return 0;
}

}  // namespace qwench::cli
