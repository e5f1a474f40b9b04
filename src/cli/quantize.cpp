#include <fmt/format.h>

#include "checkpoint/checkpoint.h"
#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/interrupt.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "cli/transfer_line.h"
#include "convert/quantize_model.h"

namespace qwench::cli {
namespace {

std::string as_text(const QuantizeReport& report, const std::string& out) {
  std::string text;
  for (const QuantizeReport::Part& part : report.parts) {
    text += fmt::format("{:>5} tensors  {:>5} -> {:<5}  {:>9} -> {}\n", part.tensors, name(part.from),
                        name(part.to), amount(part.bytes_from), amount(part.bytes_to));
  }
  return text +
         fmt::format("{}: {}, {:.0f} % of the {} of weights read\n", printable(out), amount(report.bytes),
                     100.0 * static_cast<double>(report.bytes) / static_cast<double>(report.bytes_from),
                     amount(report.bytes_from));
}

Json as_json(const QuantizeReport& report, const std::string& out) {
  Json parts = Json::array();
  for (const QuantizeReport::Part& part : report.parts) {
    parts.push_back({{"tensors", part.tensors},
                     {"from", name(part.from)},
                     {"to", name(part.to)},
                     {"bytes_from", part.bytes_from},
                     {"bytes_to", part.bytes_to}});
  }
  return {{"file", out},
          {"bytes", report.bytes},
          {"bytes_from", report.bytes_from},
          {"tensors", std::move(parts)}};
}

}  // namespace

int quantize_command(const Arguments& arguments) {
  CommandLine line(
      "quantize",
      "Writes a model as one GGUF file, which other programs that read the format load too. Vectors are "
      "stored "
      "as f32; of fewer than 8 bits, embedding and head are stored as q8_0. `qwench compare` says what it "
      "costs.",
      "  qwench quantize ~/models/Qwen3-0.6B qwen3-0.6b-q8_0.gguf --type q8_0\n"
      "  qwench quantize Qwen/Qwen3-0.6B qwen3-0.6b-q4_k.gguf --type q4_k --json\n");
  std::string model;
  std::string out;
  std::string type = "q8_0";
  QuantizeOptions options;
  bool json = false;
  line.add_option("MODEL", model, "checkpoint folder, .gguf file, or name of a pulled model")
      .value_name("")
      .required();
  line.add_option("OUT", out, "the file to write").value_name("").required();
  line.add_option("--type", type, "f32, f16, bf16, q8_0, q4_0 or q4_k").value_name("TYPE").show_default();
  line.add_option("-t,--threads", options.threads, "0: all cores").value_name("N").whole_number();
  line.add_flag("--force", options.overwrite, "replace OUT if it is there");
  line.add_flag("--json", json, "one JSON object on stdout");
  if (!line.parse(arguments)) return 0;
  options.type = parse_weight_type("--type", type);
  const auto checkpoint = Checkpoint::open(find_model(model));
  const Interrupt interrupt(Interrupt::Second::ends_program);
  QuantizeReport report;
  {
    ProgressLine progress;
    options.progress = [&](double share) {
      progress.update("writing", share);
      return !interrupt.happened();
    };
    report = quantize_model(*checkpoint, out, options);
  }
  if (report.stopped) return kInterruptedExitCode;
  print(json ? to_line(as_json(report, out)) + "\n" : as_text(report, out));
  return 0;
}

}  // namespace qwench::cli
