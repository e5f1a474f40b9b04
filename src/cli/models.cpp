#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>

#include "cli/command_line.h"
#include "cli/terminal.h"
#include "cli/transfer_line.h"
#include "core/json.h"
#include "core/utf8.h"
#include "hub/cache.h"
#include "hub/environment.h"
#include "qwench/error.h"

namespace qwench::cli {
namespace {

std::string date(std::time_t time, const char* format) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), format, &parts);
  return text.data();
}

std::string age(std::time_t then) {
  const double seconds = std::max(0.0, std::difftime(std::time(nullptr), then));
  if (seconds < 3600) return fmt::format("{:.0f} min ago", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{:.0f} h ago", seconds / 3600);
  return fmt::format("{:.0f} days ago", seconds / 86400);
}

// Fields of files are foreign text.
std::string field(const std::string& text) { return to_valid_utf8(text.substr(0, 64)); }

Json model_json(const hub::CachedModel& model) {
  return {{"name", model.name.text()},
          {"commit", model.commit},
          {"refs", model.refs},
          {"bytes", model.bytes},
          {"format", model.format},
          {"dtype", model.dtype.empty() ? Json() : Json(field(model.dtype))},
          {"family", model.family.empty() ? Json() : Json(field(model.family))},
          {"last_used", date(model.last_used, "%Y-%m-%dT%H:%M:%SZ")},
          {"path", to_valid_utf8(model.path.string())}};
}

void print_table(const std::vector<hub::CachedModel>& models) {
  std::vector<std::array<std::string, 6>> rows{{"NAME", "COMMIT", "SIZE", "TYPE", "FAMILY", "LAST USED"}};
  for (const hub::CachedModel& model : models) {
    const std::string type = model.format == "none"
                                 ? "no weights"
                                 : model.format + (model.dtype.empty() ? "" : " " + field(model.dtype));
    rows.push_back({model.name.text(), model.commit.substr(0, 12), amount(model.bytes), type,
                    field(model.family), age(model.last_used)});
  }
  std::array<size_t, 6> widths{};
  for (auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}", row[i], i + 1 < row.size() ? widths[i] + 2 : 0);
    print(line + "\n");
  }
}

int list_models(const Arguments& arguments) {
  CommandLine line(
      "models",
      "Lists the models in the cache (HF_HUB_CACHE): each NAME can be given wherever a command takes a "
      "MODEL. qwench models rm NAME deletes one.",
      "  qwench models\n"
      "  qwench models --json\n"
      "  qwench models rm Qwen/Qwen3-0.6B\n");
  bool json = false;
  line.add_flag("--json", json, "one JSON array");
  if (!line.parse(arguments)) return 0;
  const hub::Cache cache(hub::read_environment().cache);
  const std::vector<hub::CachedModel> models = cache.list();
  if (json) {
    Json array = Json::array();
    for (const hub::CachedModel& model : models) array.push_back(model_json(model));
    print(array.dump() + "\n");
  } else if (models.empty()) {
    print_error(fmt::format("there is no model in {}; fetch one by: qwench pull Qwen/Qwen3-0.6B",
                            cache.root().string()));
  } else {
    print_table(models);
  }
  return 0;
}

int remove_models(const Arguments& arguments) {
  CommandLine line(
      "models rm",
      "Deletes models from the cache. ORG/NAME means all that is kept of it, ORG/NAME@REVISION that "
      "revision, ORG/NAME:CHOICE that GGUF model. Asks first.",
      "  qwench models rm Qwen/Qwen3-0.6B\n"
      "  qwench models rm --yes Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M\n");
  std::vector<std::string> names;
  bool yes = false;
  line.add_rest("NAME", names, "what to delete").value_name("").required();
  line.add_flag("-y,--yes", yes, "do not ask");
  if (!line.parse(arguments)) return 0;
  std::vector<hub::ModelName> models;
  for (const std::string& name : names) {
    const auto model = hub::parse_model_name(name);
    if (!model) throw UsageError(fmt::format("{} is no name of a model; qwench models lists them", name));
    models.push_back(*model);
  }
  const hub::Cache cache(hub::read_environment().cache);
  for (const hub::ModelName& model : models) {
    const hub::Removal removal = cache.plan_removal(model);
    if (!yes) {
      if (!is_terminal(stdin) || !is_terminal(stderr))
        throw UsageError("nobody is there to be asked; give --yes to delete");
      if (!agrees(fmt::format("Delete {} ({})?", model.text(), amount(removal.bytes)))) return 1;
    }
    cache.remove(model);
    print_error(fmt::format("{}: deleted, {} freed", model.text(), amount(removal.bytes)));
  }
  return 0;
}

}  // namespace

int models_command(const Arguments& arguments) {
  if (!arguments.empty() && arguments.front() == "rm")
    return remove_models(Arguments(arguments.begin() + 1, arguments.end()));
  return list_models(arguments);
}

}  // namespace qwench::cli
