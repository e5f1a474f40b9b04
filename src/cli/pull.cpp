#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/terminal.h"
#include "qwench/error.h"

namespace qwench::cli {

int pull_command(const Arguments& arguments) {
  CommandLine line(
      "pull",
      "Fetches a model from a hub into the cache that Python's huggingface_hub uses, and prints where it "
      "lies. NAME is ORG/NAME, with :CHOICE for one of several GGUF models and @REVISION for a branch, "
      "tag or commit. What is there already is not fetched again; a broken transfer goes on where it "
      "stopped.",
      "  qwench pull Qwen/Qwen3-0.6B\n"
      "  qwench pull Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M\n"
      "  qwench pull Qwen/Qwen3-0.6B --source modelscope\n"
      "  qwench pull Qwen/Qwen3-0.6B --include '*.json'\n");
  std::string name;
  std::string source = "huggingface";
  hub::Filter filter;
  bool quiet = false;
  line.add_option("NAME", name, "the model").value_name("").required();
  line.add_option("--source", source, "huggingface (HF_ENDPOINT) or modelscope")
      .value_name("HUB")
      .show_default();
  line.add_option("--include", filter.include,
                  "fetch the files that match, and no others; may be given again")
      .value_name("GLOB")
      .repeatable();
  line.add_option("--exclude", filter.exclude, "leave out the files that match; may be given again")
      .value_name("GLOB")
      .repeatable();
  line.add_flag("-q,--quiet", quiet, "say nothing on stderr but errors");
  if (!line.parse(arguments)) return 0;
  const auto model = hub::parse_model_name(name);
  if (!model) {
    throw UsageError(
        fmt::format("{} is no name of a model at a hub; expected ORG/NAME[:CHOICE][@REVISION], such as "
                    "Qwen/Qwen3-0.6B",
                    name));
  }
  if (source != "huggingface" && source != "modelscope")
    throw UsageError(fmt::format("--source {}: expected huggingface or modelscope", source));
  const auto hub_source = source == "modelscope" ? hub::Source::modelscope : hub::Source::hugging_face;
  print(pull_model(*model, hub_source, filter, quiet).path.string() + "\n");
  return 0;
}

}  // namespace qwench::cli
