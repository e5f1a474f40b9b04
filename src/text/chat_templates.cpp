#include <fmt/format.h>

#include <algorithm>

#include "core/mapped_file.h"
#include "core/utf8.h"
#include "text/chat_template.h"

namespace qwench {
namespace {

constexpr size_t kMaxConfigBytes = size_t{64} << 20;
constexpr size_t kMaxTemplateFileBytes = size_t{4} << 20;

Error malformed(const std::string& message) { return Error(ErrorKind::malformed, message); }

}  // namespace

void ChatTemplates::add(const std::string& name, std::string source, std::string what) {
  sources_[name] = {std::move(source), std::move(what)};
}

std::vector<std::string> ChatTemplates::names() const {
  std::vector<std::string> names;
  for (const auto& [name, source] : sources_) names.push_back(name);
  return names;
}

ChatTemplate ChatTemplates::select(const std::optional<std::string>& name, bool has_tools) const {
  const std::string wanted =
      name ? *name : (has_tools && sources_.count("tool_use") != 0 ? "tool_use" : "default");
  auto found = sources_.find(wanted);
  if (found == sources_.end() && !name && sources_.size() == 1) found = sources_.begin();
  if (found == sources_.end()) {
    throw Error(ErrorKind::not_found,
                sources_.empty()
                    ? "this model has no chat template: give a plain prompt, or a template file"
                    : fmt::format("this model has no chat template called '{}'; there {}: {}", wanted,
                                  sources_.size() == 1 ? "is" : "are", fmt::join(names(), ", ")));
  }
  return ChatTemplate::parse(found->second.text, found->second.what);
}

ChatTemplates ChatTemplates::from_tokenizer_config(const Json& config, const std::string& what) {
  ChatTemplates templates;
  if (!config.is_object()) throw malformed(what + ": expected a JSON object");
  const auto field = config.find("chat_template");
  if (field == config.end() || field->is_null()) return templates;
  if (field->is_string()) {
    templates.add("default", field->get<std::string>(), what + ": chat_template");
    return templates;
  }
  if (!field->is_array()) {
    throw malformed(
        fmt::format("{}: chat_template is of type {}, expected a string or a list of {{name, template}}",
                    what, field->type_name()));
  }
  for (const Json& each : *field) {
    const bool fine = each.is_object() && each.contains("name") && each["name"].is_string() &&
                      each.contains("template") && each["template"].is_string();
    if (!fine)
      throw malformed(what + ": an entry of chat_template is no object with the strings name and template");
    const std::string name = each["name"].get<std::string>();
    templates.add(name, each["template"].get<std::string>(),
                  fmt::format("{}: chat_template '{}'", what, name));
  }
  return templates;
}

ChatTemplates ChatTemplates::from_folder(const std::filesystem::path& folder) {
  ChatTemplates templates;
  const auto config = folder / "tokenizer_config.json";
  if (is_there(config)) {
    templates = from_tokenizer_config(parse_json(read_text_file(config, kMaxConfigBytes), config.string()),
                                      config.string());
  }
  const auto add_file = [&](const std::string& name, const std::filesystem::path& path) {
    templates.add(name, read_text_file(path, kMaxTemplateFileBytes), path.string());
  };
  const auto main = folder / "chat_template.jinja";
  if (is_there(main)) add_file("default", main);
  for (const char* subfolder : {"chat_templates", "additional_chat_templates"}) {
    if (!std::filesystem::is_directory(folder / subfolder)) continue;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder / subfolder)) {
      if (entry.path().extension() == ".jinja") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) add_file(file.stem().string(), file);
  }
  return templates;
}

ChatTemplates ChatTemplates::from_gguf(const std::map<std::string, std::string>& strings,
                                       const std::string& what) {
  ChatTemplates templates;
  const std::string key = "tokenizer.chat_template";
  for (const auto& [name, value] : strings) {
    if (name == key)
      templates.add("default", value, what + ": " + key);
    else if (name.starts_with(key + ".") && name.size() > key.size() + 1)
      templates.add(name.substr(key.size() + 1), value, what + ": " + name);
  }
  return templates;
}

}  // namespace qwench
