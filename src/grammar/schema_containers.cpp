#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema_compiler.h"

namespace qwench {
namespace {}  // namespace

std::vector<SchemaCompiler::Property> SchemaCompiler::properties_of(const Json& schema, const Json& others,
                                                                    const std::string& path) {
  std::vector<std::string> required;
  if (schema.contains("required")) {
    if (!schema["required"].is_array()) fail(path, "required: expected an array of names");
    for (const Json& name : schema["required"]) {
      if (!name.is_string()) fail(path, "required: expected an array of names");
      required.push_back(name.get<std::string>());
    }
  }
  std::sort(required.begin(), required.end());
  required.erase(std::unique(required.begin(), required.end()), required.end());
  std::vector<Property> properties;
  const auto add = [&](const std::string& name, const Json& value, bool is_required) {
    const std::string place = fmt::format("{}/properties/{}", path, name);
    const Expr member =
        builder_.sequence({json_.quoted(name), json_.member(), builder_.rule(place, compile(value, place))});
    properties.push_back({name, member, is_required});
  };
  if (schema.contains("properties")) {
    if (!schema["properties"].is_object()) fail(path, "properties: expected an object");
    for (const auto& [name, value] : schema["properties"].items()) {
      const auto found = std::lower_bound(required.begin(), required.end(), name);
      const bool is_required = found != required.end() && *found == name;
      if (is_required) required.erase(found);
      const bool impossible = value.is_boolean() && !value.get<bool>();
      if (!impossible || is_required) add(name, value, is_required);
    }
  }
  for (const std::string& name : required) add(name, others, true);
  return properties;
}

/// Members parted by commas, those that are not required maybe left out; then up to `most_others` others.
GrammarBuilder::Expr SchemaCompiler::members_in_order(const std::vector<Property>& properties,
                                                      std::optional<Expr> others, int most_others) {
  const Expr comma = json_.comma();
  const size_t count = properties.size();
  const size_t first_required = static_cast<size_t>(
      std::find_if(properties.begin(), properties.end(), [](const Property& p) { return p.required; }) -
      properties.begin());
  Expr more_others = builder_.empty();
  if (others) more_others = builder_.repeat(builder_.sequence({comma, *others}), 0, most_others);

  // behind[i]: properties from i on where others came before, each with its comma.
  std::vector<Expr> behind(count + 1);
  behind[count] = builder_.rule("members", more_others);
  for (size_t i = count; i-- > 0;) {
    Expr one = builder_.sequence({comma, properties[i].member});
    if (!properties[i].required) one = builder_.optional(one);
    behind[i] = builder_.rule("members", builder_.sequence({one, behind[i + 1]}));
  }
  std::vector<Expr> ways;
  for (size_t i = 0; i <= std::min(first_required, count); ++i) {
    if (i < count) ways.push_back(builder_.sequence({properties[i].member, behind[i + 1]}));
  }
  if (first_required == count) {
    if (others) {
      const int rest =
          most_others == GrammarBuilder::kUnbounded ? GrammarBuilder::kUnbounded : most_others - 1;
      ways.push_back(
          builder_.sequence({*others, builder_.repeat(builder_.sequence({comma, *others}), 0, rest)}));
    }
    if (ways.empty()) return builder_.empty();
    return builder_.optional(builder_.sequence({builder_.either(std::move(ways)), json_.space()}));
  }
  return builder_.sequence({builder_.either(std::move(ways)), json_.space()});
}

GrammarBuilder::Expr SchemaCompiler::compile_object(const Json& schema, const std::string& path) {
  // Properties that nobody declared are valid unless they are forbidden, but written only where the schema
  // asks for them, or declares none.
  const bool declares = schema.contains("properties");
  Json others = !declares;
  if (schema.contains("unevaluatedProperties")) others = schema["unevaluatedProperties"];
  if (schema.contains("additionalProperties")) others = schema["additionalProperties"];
  if (!others.is_boolean() && !others.is_object())
    fail(path, "additionalProperties: expected a schema: an object, true or false");
  const bool told = schema.contains("additionalProperties") || schema.contains("unevaluatedProperties");
  const std::vector<Property> properties = properties_of(schema, told ? others : Json(true), path);

  const auto required = static_cast<int>(
      std::count_if(properties.begin(), properties.end(), [](const Property& p) { return p.required; }));
  const int least = count(schema, "minProperties", path).value_or(0);
  const std::optional<int> most = count(schema, "maxProperties", path);
  bool open = !(others.is_boolean() && !others.get<bool>());
  int most_others = GrammarBuilder::kUnbounded;
  if (most) {
    if (*most < required || *most < least) return builder_.nothing();
    if (*most < static_cast<int>(properties.size()))
      fail(path, fmt::format("maxProperties: found {}, but {} properties are declared; fewer are supported "
                             "only where they are all required",
                             *most, properties.size()));
    most_others = *most - static_cast<int>(properties.size());
    open = open && most_others > 0;
  }
  // Names of others may repeat, and then count once.
  const bool one_of_others = least == 1 && properties.empty() && open;
  if (least > required && !one_of_others)
    fail(path, fmt::format("minProperties: found {}, but only {} properties are required; more are not "
                           "supported: put them into \"required\"",
                           least, required));

  std::optional<Expr> other;
  if (open) {
    std::vector<std::string> names;
    for (const Property& property : properties) names.push_back(property.name);
    if (declares) {
      for (const auto& [name, value] : schema["properties"].items()) names.push_back(name);
    }
    const std::string place = path + "/additionalProperties";
    const Expr key = names.empty() ? json_.string() : builder_.rule(place, json_.other_key(names));
    other = builder_.sequence({key, json_.member(), builder_.rule(place, compile(others, place))});
  }
  Expr members = members_in_order(properties, other, most_others);
  if (one_of_others) {
    const int rest = most_others == GrammarBuilder::kUnbounded ? GrammarBuilder::kUnbounded : most_others - 1;
    members = builder_.sequence(
        {*other, builder_.repeat(builder_.sequence({json_.comma(), *other}), 0, rest), json_.space()});
  }
  return builder_.sequence({builder_.literal("{"), json_.space(), members, builder_.literal("}")});
}

GrammarBuilder::Expr SchemaCompiler::compile_array(const Json& schema, const std::string& path) {
  const int least = count(schema, "minItems", path).value_or(0);
  const int most = count(schema, "maxItems", path).value_or(GrammarBuilder::kUnbounded);
  if (most != GrammarBuilder::kUnbounded && most < least) return builder_.nothing();
  std::vector<Expr> prefix;
  if (schema.contains("prefixItems")) {
    const Json& list = schema["prefixItems"];
    if (!list.is_array() || list.size() > 1000)
      fail(path, "prefixItems: expected an array of at most 1000 schemas");
    for (const Json& item : list) {
      const std::string place = fmt::format("{}/prefixItems/{}", path, prefix.size());
      prefix.push_back(builder_.rule(place, compile(item, place)));
    }
  }
  if (schema.contains("items") && schema["items"].is_array())
    fail(path, "items: an array of schemas is of an older draft; use \"prefixItems\"");
  const auto fixed = static_cast<int>(prefix.size());
  // Items that nobody speaks of are written where there must be some.
  const Json rest = schema.contains("items") ? schema["items"] : Json(fixed == 0 || least > fixed);
  const std::string place = path + "/items";
  const Expr item = builder_.rule(place, compile(rest, place));

  const Expr comma = json_.comma();
  const int most_rest =
      most == GrammarBuilder::kUnbounded ? GrammarBuilder::kUnbounded : std::max(0, most - fixed);
  const auto after = [&](int before) {  // items behind so many, each with its comma
    const Expr one = builder_.sequence({comma, item});
    const int still = std::max(0, least - std::max(fixed, before));
    if (most_rest == GrammarBuilder::kUnbounded)
      return builder_.repeat(one, still, GrammarBuilder::kUnbounded);
    return builder_.repeat(one, still, std::max(still, most_rest - std::max(0, before - fixed)));
  };
  const int taken = most == GrammarBuilder::kUnbounded ? fixed : std::min(fixed, most);
  std::optional<Expr> items;
  if (taken > 0) {
    Expr behind = builder_.rule("items", after(fixed));
    for (int i = taken; i-- > 1;) {
      const Expr more = builder_.sequence({comma, prefix[static_cast<size_t>(i)], behind});
      behind = builder_.rule("items", i >= least ? builder_.optional(more) : more);
    }
    items = builder_.sequence({prefix[0], behind});
  } else if (most != 0) {
    items = builder_.sequence({item, after(1)});
  }
  const Expr open = builder_.literal("[");
  const Expr close = builder_.literal("]");
  if (!items) return builder_.sequence({open, json_.space(), close});
  Expr content = builder_.sequence({*items, json_.space()});
  if (least == 0) content = builder_.optional(content);
  return builder_.sequence({open, json_.space(), content, close});
}

}  // namespace qwench
