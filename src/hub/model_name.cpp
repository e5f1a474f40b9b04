#include "hub/model_name.h"

#include <algorithm>

#include "core/utf8.h"

namespace qwench::hub {
namespace {

constexpr size_t kMaxNameLength = 96;
constexpr size_t kMaxPartLength = 255;
constexpr size_t kMaxPathLength = 1024;

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_word_character(char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.'; }

bool is_repository_part(std::string_view part) {
  const auto ends_well = [](char c) { return is_alphanumeric(c) || c == '_'; };
  return !part.empty() && part.size() <= kMaxNameLength && ends_well(part.front()) &&
         ends_well(part.back()) && std::all_of(part.begin(), part.end(), is_word_character) &&
         part.find("..") == std::string_view::npos && part.find("--") == std::string_view::npos;
}

bool is_plain_text(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid || c.code < 0x20 || (c.code >= 0x7F && c.code < 0xA0) || c.code == '\\') return false;
    text.remove_prefix(static_cast<size_t>(c.length));
  }
  return true;
}

}  // namespace

std::string ModelName::text() const {
  return repo() + (choice.empty() ? "" : ":" + choice) + (revision.empty() ? "" : "@" + revision);
}

std::optional<ModelName> parse_model_name(std::string_view text) {
  ModelName model;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    model.revision = text.substr(at + 1);
    if (!is_safe_path(model.revision) || model.revision.find(':') != std::string::npos) return std::nullopt;
    text = text.substr(0, at);
  }
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    model.choice = text.substr(colon + 1);
    if (!is_safe_path(model.choice)) return std::nullopt;
    text = text.substr(0, colon);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  model.org = text.substr(0, slash);
  model.name = text.substr(slash + 1);
  if (!is_repository_part(model.org) || !is_repository_part(model.name)) return std::nullopt;
  return model;
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathLength || !is_plain_text(path)) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPartLength) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_safe_word(std::string_view word) {
  return !word.empty() && word.size() <= kMaxPartLength && word.front() != '.' &&
         std::all_of(word.begin(), word.end(), is_word_character);
}

}  // namespace qwench::hub
