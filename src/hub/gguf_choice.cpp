#include "hub/gguf_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "checkpoint/printable.h"
#include "core/ascii.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr size_t kPartSuffix = std::string_view("-00001-of-00003").size();

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

struct Part {
  std::string stem;
  size_t number = 1;
  size_t count = 1;
};

std::optional<size_t> five_digits(const std::string& text) {
  if (text.size() != 5 || text.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return std::stoul(text);
}

std::optional<Part> part_of(const std::string& path) {
  if (!ascii_lower(path).ends_with(kExtension) || ascii_lower(file_name(path)).starts_with("mmproj"))
    return std::nullopt;
  std::string stem = path.substr(0, path.size() - kExtension.size());
  if (stem.size() > kPartSuffix) {
    const std::string suffix = stem.substr(stem.size() - kPartSuffix);
    const auto number = five_digits(suffix.substr(1, 5));
    const auto count = five_digits(suffix.substr(10));
    if (suffix.front() == '-' && suffix.substr(6, 4) == "-of-" && number && count && *number >= 1 &&
        *number <= *count)
      return Part{stem.substr(0, stem.size() - kPartSuffix), *number, *count};
  }
  return Part{stem, 1, 1};
}

bool has_label(const std::string& stem, const std::string& choice) {
  const std::string name = ascii_lower(file_name(stem));
  const std::string label = ascii_lower(choice);
  if (name == label) return true;
  if (!name.ends_with(label) || name.size() <= label.size()) return false;
  const char before = name[name.size() - label.size() - 1];
  // An underscore also stands inside labels: K_M is none.
  return before == '-' || before == '.' ||
         (before == '_' && std::string_view("qifb").find(label.front()) != std::string_view::npos);
}

std::string what_to_type(const std::vector<GgufChoice>& choices, const std::string& repo) {
  constexpr size_t kShown = 40;
  std::string list;
  for (size_t i = 0; i < std::min(choices.size(), kShown); ++i)
    list += fmt::format("{}{}:{}", i == 0 ? "" : ", ", repo, choices[i].label());
  return choices.size() > kShown ? list + ", ..." : list;
}

}  // namespace

std::string GgufChoice::label() const {
  const std::string name = file_name(stem);
  const size_t separator = name.find_last_of("-.");
  const std::string last = separator == std::string::npos ? "" : name.substr(separator + 1);
  const bool is_type = !last.empty() &&
                       std::string_view("qifbt").find(ascii_lower(last).front()) != std::string_view::npos &&
                       last.find_first_of("0123456789") != std::string::npos;
  return is_type ? last : name;
}

std::vector<GgufChoice> gguf_choices(const std::vector<std::string>& paths) {
  std::map<std::pair<std::string, size_t>, std::map<size_t, std::string>> models;  // (stem, count) -> parts
  for (const std::string& path : paths) {
    if (const auto part = part_of(path)) models[{part->stem, part->count}][part->number] = path;
  }
  std::vector<GgufChoice> choices;
  for (const auto& [key, parts] : models) {
    GgufChoice choice{key.first, {}, key.second};
    for (const auto& [number, path] : parts) choice.parts.push_back(path);
    choices.push_back(std::move(choice));
  }
  return choices;
}

const GgufChoice& choose_gguf(const std::vector<GgufChoice>& choices, const std::string& choice,
                              const std::string& repo) {
  if (choices.empty()) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: it has no GGUF file, so :{} chooses nothing; leave it out", repo, choice));
  }
  if (choice.empty()) {
    if (choices.size() == 1) return choices.front();
    throw Error(ErrorKind::invalid_argument, fmt::format("{}: {} GGUF models are there; choose one: {}", repo,
                                                         choices.size(), what_to_type(choices, repo)));
  }
  const auto by_path = std::find_if(choices.begin(), choices.end(), [&](const GgufChoice& model) {
    return std::find(model.parts.begin(), model.parts.end(), choice) != model.parts.end();
  });
  if (by_path != choices.end()) return *by_path;
  std::vector<const GgufChoice*> found;
  for (const GgufChoice& model : choices) {
    if (has_label(model.stem, choice)) found.push_back(&model);
  }
  if (found.size() == 1) return *found.front();
  if (found.size() > 1) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: :{} may be {} or {}; give the path of the file", repo, choice,
                            found[0]->parts.front(), found[1]->parts.front()));
  }
  throw Error(ErrorKind::not_found, fmt::format("{}: there is no GGUF model {}; there are: {}", repo,
                                                printable(choice), what_to_type(choices, repo)));
}

}  // namespace qwench::hub
