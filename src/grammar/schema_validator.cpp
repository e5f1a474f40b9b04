#include "grammar/schema_validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.h"
#include "grammar/decimal_multiples.h"
#include "grammar/format_check.h"
#include "grammar/number_range.h"
#include "grammar/string_formats.h"
#include "qwench/error.h"

namespace qwench {
namespace {

const Json* keyword_in(const Json& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

bool is_of_type(const Json& value, const std::string& type) {
  if (type != "integer") return type == type_of(value);
  if (!value.is_number()) return false;
  return !value.is_number_float() || value.get<double>() == std::floor(value.get<double>());
}

/// Whether a count fits its bounds, keywords such as minItems; what is no number bounds nothing here.
bool counts_fit(size_t count, const Json& schema, const char* least, const char* most) {
  const auto size = static_cast<double>(count);
  const Json* low = keyword_in(schema, least);
  const Json* high = keyword_in(schema, most);
  return (low == nullptr || !low->is_number() || size >= low->get<double>()) &&
         (high == nullptr || !high->is_number() || size <= high->get<double>());
}

}  // namespace

bool SchemaValidator::is_valid(const Json& value, const Json& schema, const std::string& path) {
  Evaluated seen;
  return check(value, schema, path, seen);
}

bool SchemaValidator::check(const Json& value, const Json& schema, const std::string& path, Evaluated& seen) {
  constexpr int kDeepest = 200;
  constexpr int kMostChecks = 200000;
  if (schema.is_boolean()) return schema.get<bool>();
  if (!schema.is_object()) document_.fail(path, "expected a schema: an object, true or false");
  if (++spent_ > kMostChecks || ++depth_ > kDeepest)
    document_.fail(path,
                   "enum and const: to compare their values with the schemas beside them asks too much");
  const auto holds = [&] {
    if (const Json* type = keyword_in(schema, "type")) {
      const std::set<std::string> types = declared_types(*type);
      const auto fits = [&](const std::string& one) { return is_of_type(value, one); };
      if (std::none_of(types.begin(), types.end(), fits)) return false;
    }
    if (const Json* values = keyword_in(schema, "enum"))
      if (!values->is_array() || !has_value(*values, value)) return false;
    if (const Json* only = keyword_in(schema, "const"))
      if (!same_value(*only, value)) return false;
    if (const Json* also = keyword_in(schema, kAlso)) {
      for (const Json& one : *also)
        if (!is_valid(value, one, path)) return false;
    }
    if (value.is_number() && !check_number(value, schema, path)) return false;
    if (value.is_string() && !check_string(value.get_ref<const std::string&>(), schema, path)) return false;
    if (value.is_object() && !check_object(value, schema, path, seen)) return false;
    if (value.is_array() && !check_array(value, schema, path, seen)) return false;
    return check_in_place(value, schema, path, seen) && check_rest(value, schema, path, seen);
  };
  const bool valid = holds();
  --depth_;
  return valid;
}

bool SchemaValidator::check_number(const Json& value, const Json& schema, const std::string& path) const {
  const auto own = Decimal::of(value);
  const auto order = [&](const char* keyword) -> std::optional<int> {
    const Json* bound = keyword_in(schema, keyword);
    if (bound == nullptr || !bound->is_number()) return std::nullopt;
    return compare(*own, *Decimal::of(*bound));
  };
  const auto is_set = [&](const char* keyword) {  // the booleans of draft 4
    const Json* bound = keyword_in(schema, keyword);
    return bound != nullptr && is_true(*bound);
  };
  const auto low = order("minimum");
  const auto high = order("maximum");
  const auto above = order("exclusiveMinimum");
  const auto below = order("exclusiveMaximum");
  if (low && (*low < 0 || (*low == 0 && is_set("exclusiveMinimum")))) return false;
  if (high && (*high > 0 || (*high == 0 && is_set("exclusiveMaximum")))) return false;
  if ((above && *above <= 0) || (below && *below >= 0)) return false;
  if (const Json* format = keyword_in(schema, "format"); format != nullptr && *format == "int32") {
    if (std::abs(value.get<double>() + 0.5) > 2147483648.0) return false;
  }
  const Json* step = keyword_in(schema, "multipleOf");
  if (step == nullptr) return true;
  if (!step->is_number() || *step <= 0)
    document_.fail(path, fmt::format("multipleOf: found {}, expected a number above 0", step->dump()));
  return is_multiple(value, *step);
}

bool SchemaValidator::check_string(const std::string& value, const Json& schema,
                                   const std::string& path) const {
  if (!counts_fit(to_utf32(value).size(), schema, "minLength", "maxLength")) return false;
  if (const Json* pattern = keyword_in(schema, "pattern")) {
    if (!pattern->is_string()) document_.fail(path, "pattern: expected a string");
    if (!document_.matches(pattern->get<std::string>(), value, path)) return false;
  }
  const Json* format = keyword_in(schema, "format");
  if (format == nullptr) return true;
  if (!format->is_string()) document_.fail(path, "format: expected a string");
  const auto& name = format->get_ref<const std::string&>();
  if (says_nothing_of_strings(name)) return true;
  if (format_pattern(name) == nullptr) document_.fail(path, unknown_format(name));
  const FormatCheck found = check_format(name, value, [&](const std::string& pattern) {
    return document_.matches("^(" + pattern + ")$", value, path);
  });
  if (found == FormatCheck::unclear)
    document_.fail(path,
                   fmt::format("format: whether {} is of the format \"{}\" is not checked here: leave one of "
                               "them out",
                               Json(value).dump(), name));
  return found == FormatCheck::valid;
}

bool SchemaValidator::check_object(const Json& value, const Json& schema, const std::string& path,
                                   Evaluated& seen) {
  if (!counts_fit(value.size(), schema, "minProperties", "maxProperties")) return false;
  if (const Json* required = keyword_in(schema, "required"); required != nullptr && required->is_array()) {
    for (const Json& name : *required)
      if (name.is_string() && !value.contains(name.get_ref<const std::string&>())) return false;
  }
  const Json* properties = keyword_in(schema, "properties");
  const Json* patterns = keyword_in(schema, "patternProperties");
  const Json* additional = keyword_in(schema, "additionalProperties");
  const Json* names = keyword_in(schema, "propertyNames");
  for (const auto& [name, item] : value.items()) {
    bool spoken_of = false;
    if (names != nullptr && !is_valid(Json(name), *names, path + "/propertyNames")) return false;
    if (properties != nullptr && properties->is_object() && properties->contains(name)) {
      spoken_of = true;
      if (!is_valid(item, (*properties)[name], fmt::format("{}/properties/{}", path, name))) return false;
    }
    if (patterns != nullptr && patterns->is_object()) {
      for (const auto& [pattern, one] : patterns->items()) {
        const std::string place = fmt::format("{}/patternProperties/{}", path, pattern);
        if (!document_.matches(pattern, name, place)) continue;
        spoken_of = true;
        if (!is_valid(item, one, place)) return false;
      }
    }
    if (!spoken_of && additional != nullptr) {
      spoken_of = true;
      if (!is_valid(item, *additional, path + "/additionalProperties")) return false;
    }
    if (spoken_of) seen.names.insert(name);
  }
  return true;
}

bool SchemaValidator::check_array(const Json& value, const Json& schema, const std::string& path,
                                  Evaluated& seen) {
  if (!counts_fit(value.size(), schema, "minItems", "maxItems")) return false;
  const Json* items = keyword_in(schema, "items");
  const Json* prefix = keyword_in(schema, "prefixItems");
  if (prefix == nullptr && items != nullptr && items->is_array()) {  // of older drafts
    prefix = items;
    items = keyword_in(schema, "additionalItems");
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const bool fixed = prefix != nullptr && prefix->is_array() && i < prefix->size();
    const Json* one = fixed ? &(*prefix)[i] : items;
    if (one == nullptr) continue;
    seen.items.insert(i);
    if (!is_valid(value[i], *one, path + (fixed ? "/prefixItems" : "/items"))) return false;
  }
  if (const Json* contains = keyword_in(schema, "contains")) {
    size_t hits = 0;
    for (size_t i = 0; i < value.size(); ++i) {
      if (!is_valid(value[i], *contains, path + "/contains")) continue;
      seen.items.insert(i);
      ++hits;
    }
    const Json* least = keyword_in(schema, "minContains");
    if (hits == 0 && (least == nullptr || *least != 0)) return false;
    if (!counts_fit(hits, schema, "minContains", "maxContains")) return false;
  }
  if (const Json* unique = keyword_in(schema, "uniqueItems"); unique != nullptr && is_true(*unique)) {
    constexpr size_t kMostUniqueItems = 2000;
    if (value.size() > kMostUniqueItems)
      document_.fail(path,
                     fmt::format("uniqueItems: a listed array has more than {} items", kMostUniqueItems));
    for (size_t i = 0; i < value.size(); ++i) {
      for (size_t j = 0; j < i; ++j)
        if (same_value(value[i], value[j])) return false;
    }
  }
  return true;
}

/// Subschemas of the same value.
bool SchemaValidator::check_in_place(const Json& value, const Json& schema, const std::string& path,
                                     Evaluated& seen) {
  const auto demand = [&](const Json& one, const std::string& place) {
    Evaluated inside;
    if (!check(value, one, place, inside)) return false;
    seen.add(inside);
    return true;
  };
  for (const char* keyword : {"$ref", "$dynamicRef"}) {
    const Json* ref = keyword_in(schema, keyword);
    if (ref == nullptr) continue;
    if (!ref->is_string()) document_.fail(path, fmt::format("{}: expected a string", keyword));
    const auto& target = ref->get_ref<const std::string&>();
    if (!demand(document_.resolve(target, path), target)) return false;
  }
  for (const char* keyword : {"allOf", "anyOf", "oneOf"}) {
    const Json* list = keyword_in(schema, keyword);
    if (list == nullptr) continue;
    if (!list->is_array()) document_.fail(path, fmt::format("{}: expected an array of schemas", keyword));
    size_t valid = 0;
    for (size_t i = 0; i < list->size(); ++i)
      valid += demand((*list)[i], fmt::format("{}/{}/{}", path, keyword, i)) ? 1 : 0;
    const std::string_view name = keyword;
    if (name == "allOf" ? valid != list->size() : name == "anyOf" ? valid == 0 : valid != 1) return false;
  }
  if (const Json* no = keyword_in(schema, "not"); no != nullptr && is_valid(value, *no, path + "/not"))
    return false;
  if (const Json* condition = keyword_in(schema, "if")) {
    const char* branch = demand(*condition, path + "/if") ? "then" : "else";
    const Json* then = keyword_in(schema, branch);
    if (then != nullptr && !demand(*then, fmt::format("{}/{}", path, branch))) return false;
  }
  if (!value.is_object()) return true;
  for (const char* keyword : {"dependentRequired", "dependentSchemas", "dependencies"}) {
    const Json* names = keyword_in(schema, keyword);
    if (names == nullptr || !names->is_object()) continue;
    for (const auto& [name, needed] : names->items()) {
      if (!value.contains(name)) continue;
      const Json one = needed.is_array() ? Json{{"required", needed}} : needed;
      if (!demand(one, fmt::format("{}/{}/{}", path, keyword, name))) return false;
    }
  }
  return true;
}

/// What no other keyword of the schema has looked at.
bool SchemaValidator::check_rest(const Json& value, const Json& schema, const std::string& path,
                                 Evaluated& seen) {
  const Json* names = value.is_object() ? keyword_in(schema, "unevaluatedProperties") : nullptr;
  if (names != nullptr) {
    for (const auto& [name, item] : value.items()) {
      if (!seen.names.insert(name).second) continue;
      if (!is_valid(item, *names, path + "/unevaluatedProperties")) return false;
    }
  }
  const Json* items = value.is_array() ? keyword_in(schema, "unevaluatedItems") : nullptr;
  if (items != nullptr) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (!seen.items.insert(i).second) continue;
      if (!is_valid(value[i], *items, path + "/unevaluatedItems")) return false;
    }
  }
  return true;
}

}  // namespace qwench
