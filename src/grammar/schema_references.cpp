#include "grammar/schema_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/ascii.h"

namespace qwench {
namespace {

constexpr std::array kSchemas = {"items",
                                 "additionalItems",
                                 "additionalProperties",
                                 "contains",
                                 "propertyNames",
                                 "not",
                                 "if",
                                 "then",
                                 "else",
                                 "contentSchema",
                                 "unevaluatedItems",
                                 "unevaluatedProperties"};
constexpr std::array kLists = {"allOf", "anyOf", "oneOf", "prefixItems", "items"};
constexpr std::array kMaps = {"properties",  "patternProperties", "$defs",
                              "definitions", "dependentSchemas",  "dependencies"};

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string pointer_token(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~' || c == '/') {
      out += c == '~' ? "~0" : "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string name_of_token(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size(); ++i) {
    const bool escape =
        token[i] == '~' && i + 1 < token.size() && (token[i + 1] == '0' || token[i + 1] == '1');
    out += escape ? (token[++i] == '0' ? '~' : '/') : token[i];
  }
  return out;
}

struct Uri {
  std::string scheme;     // with its colon
  std::string authority;  // with its slashes
  std::string path;
  std::string query;  // with its mark

  std::string text() const { return scheme + authority + path + query; }
};

/// Without its fragment.
Uri parse_uri(std::string_view text) {
  Uri uri;
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && colon > 0 && colon < text.find_first_of("/?")) {
    uri.scheme = text.substr(0, colon + 1);
    text.remove_prefix(colon + 1);
  }
  if (text.starts_with("//")) {
    const size_t end = std::min(text.find_first_of("/?", 2), text.size());
    uri.authority = text.substr(0, end);
    text.remove_prefix(end);
  }
  const size_t query = std::min(text.find('?'), text.size());
  uri.path = text.substr(0, query);
  uri.query = text.substr(query);
  return uri;
}

std::string without_dots(std::string_view path) {
  std::vector<std::string_view> parts;
  bool folder = false;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    folder = part == "/." || part == "/..";
    if (part == "/..") {
      if (!parts.empty()) parts.pop_back();
    } else if (part != "/.") {
      parts.push_back(part);
    }
  }
  std::string out;
  for (const std::string_view part : parts) out += part;
  return folder ? out + "/" : out;
}

/// RFC 3986, section 5.2.
std::string joined(const std::string& base_text, std::string_view reference) {
  Uri uri = parse_uri(reference);
  if (!uri.scheme.empty()) return uri.text();
  const Uri base = parse_uri(base_text);
  uri.scheme = base.scheme;
  if (!uri.authority.empty()) return uri.text();
  uri.authority = base.authority;
  if (uri.path.empty()) {
    uri.path = base.path;
    if (uri.query.empty()) uri.query = base.query;
  } else if (uri.path[0] == '/') {
    uri.path = without_dots(uri.path);
  } else {
    const size_t slash = base.path.rfind('/');
    if (slash != std::string::npos) {
      uri.path = without_dots(base.path.substr(0, slash + 1) + uri.path);
    } else if (!base.authority.empty()) {
      uri.path = without_dots("/" + uri.path);
    }
  }
  return uri.text();
}

class References {
 public:
  explicit References(Json& root) : root_(root) {}

  void resolve() {
    collect(root_, "", "");
    while (!pending_.empty()) {
      const Reference reference = pending_.back();
      pending_.pop_back();
      Json* schema = find(reference.pointer);
      if (schema == nullptr) continue;
      Json& value = (*schema)[reference.dynamic ? "$dynamicRef" : "$ref"];
      const auto text = value.get<std::string>();
      const auto target = pointer(text, reference.base, reference.dynamic);
      value = target ? "#" + *target : kUnresolved + text;
      if (target) collect_target(*target);
    }
  }

 private:
  struct Reference {
    std::string pointer;  // of the schema that has it
    std::string base;
    bool dynamic;
  };
  struct Anchor {
    std::string pointer;
    bool dynamic;
  };

  /// Resources, anchors and references of a schema and what it holds.
  void collect(Json& schema, const std::string& pointer, std::string base) {
    if (!schema.is_object() || !collected_.insert(pointer).second) return;
    std::vector<std::string> private_keywords;
    for (const auto& member : schema.items())
      if (member.key().starts_with(kUnresolved)) private_keywords.push_back(member.key());
    for (const std::string& keyword : private_keywords) schema.erase(keyword);
    if (const auto id = schema.find("$id"); id != schema.end() && id->is_string()) {
      std::string_view text = id->get_ref<const std::string&>();
      text = text.substr(0, text.find('#'));
      if (!text.empty()) base = joined(base, text);
      if (id->get_ref<const std::string&>().starts_with('#'))  // an anchor of older drafts
        anchors_.emplace(std::pair{base, id->get<std::string>().substr(1)}, Anchor{pointer, false});
    }
    resources_.emplace(base, pointer);
    for (const char* keyword : {"$anchor", "$dynamicAnchor"}) {
      const auto name = schema.find(keyword);
      if (name == schema.end() || !name->is_string()) continue;
      const bool dynamic = keyword == std::string_view("$dynamicAnchor");
      anchors_.emplace(std::pair{base, name->get<std::string>()}, Anchor{pointer, dynamic});
      if (dynamic) dynamic_[name->get<std::string>()].insert(base);
    }
    for (const char* keyword : {"$ref", "$dynamicRef"}) {
      const auto reference = schema.find(keyword);
      if (reference != schema.end() && reference->is_string())
        pending_.push_back({pointer, base, keyword == std::string_view("$dynamicRef")});
    }
    for (auto& [keyword, value] : schema.items()) {
      const auto is_in = [name = std::string_view(keyword)](const auto& list) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      const std::string place = pointer + "/" + pointer_token(keyword);
      if (is_in(kSchemas)) collect(value, place, base);
      if (is_in(kLists) && value.is_array()) {
        for (size_t i = 0; i < value.size(); ++i) collect(value[i], fmt::format("{}/{}", place, i), base);
      }
      if (is_in(kMaps) && value.is_object()) {
        for (auto& [name, one] : value.items()) collect(one, place + "/" + pointer_token(name), base);
      }
    }
  }

  /// What a reference names may stand where no keyword of the language has schemas.
  void collect_target(const std::string& pointer) {
    std::string base;
    size_t longest = 0;
    for (const auto& [uri, place] : resources_) {
      if (!(pointer + "/").starts_with(place + "/") || place.size() < longest) continue;
      longest = place.size();
      base = uri;
    }
    if (Json* target = find(pointer)) collect(*target, pointer, base);
  }

  Json* find(std::string_view pointer) {
    Json* at = &root_;
    while (!pointer.empty()) {
      if (pointer[0] != '/') return nullptr;
      pointer.remove_prefix(1);
      const size_t end = std::min(pointer.find('/'), pointer.size());
      const std::string name = name_of_token(pointer.substr(0, end));
      pointer.remove_prefix(end);
      if (at->is_object()) {
        const auto found = at->find(name);
        if (found == at->end()) return nullptr;
        at = &*found;
      } else {
        constexpr size_t kMostDigits = 6;
        const bool number = !name.empty() && name.size() <= kMostDigits &&
                            name.find_first_not_of("0123456789") == std::string::npos;
        if (!at->is_array() || !number || std::stoul(name) >= at->size()) return nullptr;
        at = &(*at)[std::stoul(name)];
      }
    }
    return at;
  }

  std::optional<std::string> pointer(std::string_view text, const std::string& base, bool dynamic) {
    const size_t hash = std::min(text.find('#'), text.size());
    const std::string uri = joined(base, text.substr(0, hash));
    const std::string fragment = percent_decoded(text.substr(std::min(hash + 1, text.size())));
    const auto resource = resources_.find(uri);
    if (resource == resources_.end()) return std::nullopt;
    if (!fragment.empty() && fragment[0] != '/') {
      const auto anchor = anchors_.find({uri, fragment});
      if (anchor == anchors_.end()) return std::nullopt;
      // Where several resources have it, the outermost on the way to the reference would be meant.
      if (dynamic && anchor->second.dynamic && dynamic_[fragment].size() > 1) return std::nullopt;
      return anchor->second.pointer;
    }
    std::string pointer = resource->second + fragment;
    if (find(pointer) == nullptr) return std::nullopt;
    return pointer;
  }

  Json& root_;
  std::set<std::string> collected_;                                // pointers
  std::map<std::string, std::string> resources_;                   // pointers by URI
  std::map<std::pair<std::string, std::string>, Anchor> anchors_;  // by URI and name
  std::map<std::string, std::set<std::string>> dynamic_;           // URIs by name
  std::vector<Reference> pending_;
};

}  // namespace

Json with_resolved_references(const Json& schema) {
  Json resolved = schema;
  References(resolved).resolve();
  return resolved;
}

}  // namespace qwench
