#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/inspect.h"
#include "cli/terminal.h"
#include "core/log.h"

namespace qwench::cli {

int inspect_command(const Arguments& arguments) {
  CommandLine line("inspect",
                   "Checks a model's files as a load does: a checkpoint folder, a .gguf, a .safetensors or a "
                   "tokenizer.json. "
                   "Answers with one sentence, and exit code 1 when they are not sound.",
                   "  qwench inspect --check ~/models/Qwen3-0.6B\n"
                   "  qwench inspect --check model.gguf\n");
  std::string path;
  bool check = false;
  line.add_option("PATH", path, "what to check").value_name("").required();
  line.add_flag("--check", check, "check the files; the only view there is so far").required();
  if (!line.parse(arguments)) return 0;
  set_log_level(LogLevel::silent);  // the verdict is one sentence
  print(printable(check_path(find_model(path)).summary) + "\n");
  return 0;
}

}  // namespace qwench::cli
