#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "cli/command_line.h"
#include "cli/hub_model.h"
#include "cli/inspect.h"
#include "cli/inspect_views.h"
#include "cli/interrupt.h"
#include "cli/jsonl.h"
#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "core/log.h"
#include "core/utf8.h"
#include "hub/checksums.h"
#include "inspect/structure.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

constexpr int kTop = 10;

struct InspectOptions {
  std::string path;
  std::string other;
  std::string glob;
  int top = kTop;
  bool structure = false;
  bool tensors = false;
  bool largest = false;
  bool stats = false;
  bool check = false;
  bool diff = false;
  bool json = false;
};

std::vector<const ListedTensor*> matching(const Listing& listing, const std::string& glob) {
  std::vector<const ListedTensor*> found;
  for (const ListedTensor& tensor : listing.tensors()) {
    if (glob.empty() || fnmatch(glob.c_str(), tensor.name.c_str(), 0) == 0 ||
        fnmatch(glob.c_str(), tensor.stored_name.c_str(), 0) == 0)
      found.push_back(&tensor);
  }
  if (found.empty() && !glob.empty()) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: no tensor is called {}; a name may hold * and ?, e.g. '*q_proj*'",
                            listing.path().string(), printable(glob)));
  }
  return found;
}

std::vector<const ListedTensor*> largest(const Listing& listing, int count) {
  std::vector<const ListedTensor*> all = matching(listing, "");
  std::stable_sort(all.begin(), all.end(), [](const ListedTensor* a, const ListedTensor* b) {
    return a->bytes.size() > b->bytes.size();
  });
  all.resize(std::min(all.size(), static_cast<size_t>(count)));
  return all;
}

std::vector<std::optional<TensorStats>> stats_of(const std::vector<const ListedTensor*>& tensors,
                                                 const Interrupt& interrupt) {
  std::vector<ListedTensor> list;
  list.reserve(tensors.size());
  for (const ListedTensor* tensor : tensors) list.push_back(*tensor);
  ThreadPool pool;
  ProgressLine progress;
  return tensor_stats(
      list, pool, [&](double share) { progress.update("reading weights", share); }, interrupt.token());
}

int run_diff(const InspectOptions& options) {
  const Listing a = Listing::open(options.path);
  const Listing b = Listing::open(options.other);
  const Interrupt interrupt(Interrupt::Second::ends_program);
  ThreadPool pool;
  ModelDiff diff;
  {
    ProgressLine progress;
    diff = diff_models(
        a, b, pool, [&](double share) { progress.update("comparing", share); }, interrupt.token());
  }
  if (interrupt.happened()) return kInterruptedExitCode;
  print(options.json ? to_line(to_json(diff)) + "\n" : diff_text(diff, shows_colours(stdout)));
  return diff.equal() ? 0 : 1;
}

int run_views(const InspectOptions& options) {
  const Listing listing = Listing::open(options.path);
  const ModelCard card = model_card(listing);
  const bool colours = shows_colours(stdout);
  const bool whole = !options.structure && !options.tensors && !options.largest && !options.stats;
  const Interrupt interrupt(Interrupt::Second::ends_program);
  Json object = Json::object();
  std::string text;
  const auto add = [&](const std::string& view) { text += (text.empty() ? "" : "\n") + view; };
  if (whole || options.json) {
    const std::vector<ConfigField> fields = config_fields(listing, card);
    const std::vector<std::string> unused = unused_fields(listing, card);
    object["card"] = to_json(card, listing);
    object["config"] = config_json(fields);
    object["unused_fields"] = unused;
    if (whole) {
      add(card_text(card, listing, colours));
      if (!fields.empty()) add(config_text(fields, unused, colours));
    }
  }
  if (options.structure) {
    const ModuleNode tree = module_tree(listing);
    object["structure"] = to_json(tree);
    add(draw(tree, card));
  }
  const auto add_tensors = [&](const char* key, const std::vector<const ListedTensor*>& tensors, bool stats) {
    const auto values = stats ? stats_of(tensors, interrupt) : std::vector<std::optional<TensorStats>>();
    object[key] = tensors_json(tensors, listing, values);
    add(tensors_text(tensors, listing, values, colours));
  };
  if (options.tensors || (options.stats && !options.largest))
    add_tensors("tensors", matching(listing, options.glob), options.stats);
  if (options.largest)
    add_tensors("largest", largest(listing, options.top), options.stats && !options.tensors);
  if (interrupt.happened()) return kInterruptedExitCode;
  print(options.json ? to_line(object) + "\n" : text);
  return 0;
}

// Reads the files whose checksums are known, and adds what does not match.
void check_sums(const std::filesystem::path& path, const Interrupt& interrupt, CheckResult& result) {
  const std::vector<hub::Checksum> checksums = hub::known_checksums(path);
  if (checksums.empty()) return;
  ThreadPool pool;
  ProgressLine progress;
  std::vector<std::string> wrong = hub::wrong_checksums(
      checksums, pool, [&](double share) { progress.update("reading files", share); }, interrupt.token());
  if (wrong.empty()) {
    result.summary +=
        fmt::format("; {} with the right checksum", plural(static_cast<int64_t>(checksums.size()), "file"));
  } else {
    result.summary = wrong.front();
    if (wrong.size() > 1)
      result.summary +=
          fmt::format(" (and {})", plural(static_cast<int64_t>(wrong.size()) - 1, "more problem"));
    result.problems = std::move(wrong);
  }
}

int run_check(const InspectOptions& options) {
  set_log_level(LogLevel::silent);  // the verdict is one sentence
  CheckResult result = check_path(options.path);
  if (result.problems.empty()) {
    const Interrupt interrupt(Interrupt::Second::ends_program);
    check_sums(options.path, interrupt, result);
    if (interrupt.happened()) return kInterruptedExitCode;
  }
  if (!options.json && result.problems.size() > 1) {
    for (const std::string& problem : result.problems) print(printable(problem) + "\n");
  }
  if (options.json) {
    Json problems = Json::array();
    for (const std::string& problem : result.problems) problems.push_back(to_valid_utf8(problem));
    print(to_line({{"sound", result.problems.empty()},
                   {"summary", to_valid_utf8(result.summary)},
                   {"problems", std::move(problems)}}) +
          "\n");
  }
  if (!result.problems.empty()) throw Error(ErrorKind::malformed, result.summary);
  if (!options.json) print(printable(result.summary) + "\n");
  return 0;
}

/// --tensors and --top take an optional value, which may have been meant as the model.
void take_back_path(std::string& value, std::string& path) {
  if (path.empty() && !value.empty()) std::swap(value, path);
}

}  // namespace

int inspect_command(const Arguments& arguments) {
  CommandLine line(
      "inspect",
      "Shows what a model's files hold, from their headers: a checkpoint folder, a .gguf or a "
      ".safetensors. Weights are read for --stats and --diff alone. --check takes a tokenizer.json "
      "too, and answers with one sentence and exit code 1 when the files are not sound.",
      "  qwench inspect ~/models/Qwen3-0.6B\n"
      "  qwench inspect model.gguf --structure\n"
      "  qwench inspect model.gguf --tensors '*.layers.0.*'\n"
      "  qwench inspect model.gguf --top 5 --stats\n"
      "  qwench inspect --check ~/models/Qwen3-0.6B\n"
      "  qwench inspect --diff ~/models/Qwen3-0.6B ~/models/Qwen3-0.6B-tuned\n");
  InspectOptions options;
  std::string top;
  line.add_option("PATH", options.path, "the model").value_name("");
  line.add_option("OTHER", options.other, "with --diff: the model to compare with").value_name("");
  line.add_flag("--structure", options.structure, "the tree of modules, equal layers folded");
  const Option tensors = line.add_option("--tensors", options.glob, "all tensors, or those whose names match")
                             .value_name("GLOB")
                             .value_optional();
  const Option largest_option =
      line.add_option("--top", top, "the largest tensors, 10 of them or N").value_name("N").value_optional();
  line.add_flag("--stats", options.stats, "min, max, mean, std, zeros, NaN and Inf of each tensor shown");
  line.add_flag("--check", options.check, "derive every shape from the config and compare");
  line.add_flag("--diff", options.diff, "compare two models: config, shapes, types, values");
  line.add_flag("--json", options.json, "one JSON object on stdout");
  if (!line.parse(arguments)) return 0;
  options.tensors = tensors.given();
  options.largest = largest_option.given();
  take_back_path(options.glob, options.path);
  if (!top.empty() && options.path.empty() && top.find_first_not_of("0123456789") != std::string::npos)
    std::swap(top, options.path);
  if (options.path.empty()) throw UsageError("which model? see: qwench inspect --help");
  if (!top.empty()) {
    if (top.size() > 6 || top.find_first_not_of("0123456789") != std::string::npos || top.front() == '0')
      throw UsageError(fmt::format("--top {}: expected a whole number from 1", printable(top)));
    options.top = std::stoi(top);
  }
  if (options.diff != !options.other.empty())
    throw UsageError(options.diff ? "--diff compares two models; name both" : "a second model is for --diff");
  const bool views = options.structure || options.tensors || options.largest || options.stats;
  if (options.check + options.diff + views > 1)
    throw UsageError("--check, --diff and the views of one model exclude each other");
  options.path = find_model(options.path).string();
  if (options.diff) options.other = find_model(options.other).string();
  if (options.check) return run_check(options);
  return options.diff ? run_diff(options) : run_views(options);
}

}  // namespace qwench::cli
