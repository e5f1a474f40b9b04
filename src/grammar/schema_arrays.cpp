#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema_compiler.h"

namespace qwench {
GrammarBuilder::Expr SchemaCompiler::compile_array(const Json& given, const std::string& path) {
  const Json schema = with_prefix_items(given);
  const int least = count(schema, "minItems", path).value_or(0);
  const int most = count(schema, "maxItems", path).value_or(GrammarBuilder::kUnbounded);
  if (most != GrammarBuilder::kUnbounded && most < least) return builder_.nothing();
  const bool unique =
      schema.contains("uniqueItems") && is_true(schema["uniqueItems"]) && most != 0 && most != 1;
  const bool contains =
      schema.contains("contains") &&
      count(schema, "minContains", path).value_or(1) + (schema.contains("maxContains") ? 1 : 0) > 0;
  if (unique || contains) {
    for (const char* other : {"contains", "prefixItems"}) {
      if (unique && schema.contains(other))
        fail(path, fmt::format("uniqueItems: beside \"{}\" it is not supported", other));
    }
    const Expr items =
        unique ? unique_items(schema, least, most, path) : items_containing(schema, least, most, path);
    return builder_.sequence({builder_.literal("["), json_.space(), items, builder_.literal("]")});
  }
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

/// Items that differ, of a list of values. Of few in any order; of many in the order of the list.
GrammarBuilder::Expr SchemaCompiler::unique_items(const Json& schema, int least, int most,
                                                  const std::string& path) {
  constexpr size_t kMostInAnyOrder = 8;
  constexpr size_t kMostValues = 200;
  const auto list =
      document_.all_values(schema.contains("items") ? schema["items"] : Json(true), path + "/items");
  if (!list) {
    fail(path,
         "uniqueItems: it is supported only for items whose values are listed (by \"enum\", or whole numbers "
         "of a "
         "small range); give the items an \"enum\", or leave it out");
  }
  std::vector<Expr> values;
  for (const Json& value : *list) values.push_back(builder_.rule(path + "/items", json_.constant(value)));
  if (values.size() > kMostValues)
    fail(path, fmt::format("uniqueItems: the items' \"enum\" has more than {} values", kMostValues));
  const int highest = most == GrammarBuilder::kUnbounded ? static_cast<int>(values.size()) : most;
  const Expr comma = json_.comma();
  const bool any_order = values.size() <= kMostInAnyOrder;
  // [what was taken, or in order how many are behind; how many were taken]
  std::map<std::pair<uint32_t, int>, GrammarBuilder::RuleId> rules;
  const std::function<Expr(uint32_t, int)> from = [&](uint32_t done, int taken) -> Expr {
    const auto known = rules.find({done, taken});
    if (known != rules.end()) return builder_.ref(known->second);
    const GrammarBuilder::RuleId rule = builder_.declare("items");
    rules.emplace(std::pair{done, taken}, rule);
    std::vector<Expr> ways;
    if (taken >= least) ways.push_back(taken > 0 ? json_.space() : builder_.empty());
    const auto add = [&](size_t value, uint32_t then) {
      ways.push_back(
          builder_.sequence({taken > 0 ? comma : builder_.empty(), values[value], from(then, taken + 1)}));
    };
    if (taken < highest && any_order) {
      for (uint32_t i = 0; i < values.size(); ++i) {
        if ((done >> i & 1) == 0) add(i, done | uint32_t{1} << i);
      }
    } else if (taken < highest) {
      for (uint32_t i = done; i < values.size(); ++i) add(i, i + 1);
    }
    builder_.define(rule, builder_.either(std::move(ways)));
    return builder_.ref(rule);
  };
  return from(0, 0);
}

/// Items of which at least so many, and at most so many, are of another schema too.
GrammarBuilder::Expr SchemaCompiler::items_containing(const Json& schema, int least, int most,
                                                      const std::string& path) {
  constexpr int kMostHits = 64;
  const Json none = Json::array();
  const Json& prefix = schema.contains("prefixItems") ? schema["prefixItems"] : none;
  if (!prefix.is_array()) fail(path, "prefixItems: expected an array of schemas");
  const int least_hits = count(schema, "minContains", path).value_or(1);
  const std::optional<int> most_hits = count(schema, "maxContains", path);
  if (std::max({least, most, least_hits, most_hits.value_or(0), static_cast<int>(prefix.size())}) > kMostHits)
    fail(path, fmt::format("contains: counts above {} are not supported beside it", kMostHits));
  if (most_hits && *most_hits < least_hits) return builder_.nothing();
  const std::string place = path + "/contains";
  struct Item {
    Expr hit;
    Expr miss;
  };
  std::vector<Item> kinds;  // those of "prefixItems", and what is behind
  for (size_t i = 0; i <= prefix.size(); ++i) {
    const bool fixed = i < prefix.size();
    const Json item = fixed ? prefix[i] : schema.contains("items") ? schema["items"] : Json(true);
    const std::string own = fixed ? fmt::format("{}/prefixItems/{}", path, i) : path + "/items";
    const Json hit = document_.merge(item, schema["contains"], place);
    // Where hits are not limited, any item may be one that is not counted.
    const Json rest =
        most_hits ? document_.merge(item, document_.negate(schema["contains"], place), place) : item;
    kinds.push_back({builder_.rule(place, compile(hit, place)), builder_.rule(own, compile(rest, own))});
  }
  const Expr comma = json_.comma();
  std::map<std::pair<int, int>, GrammarBuilder::RuleId> rules;
  const std::function<Expr(int, int)> from = [&](int taken, int hits) -> Expr {
    if (most == GrammarBuilder::kUnbounded)
      taken = std::min(taken, std::max({least, static_cast<int>(prefix.size()), 1}));
    if (!most_hits) hits = std::min(hits, least_hits);
    const auto known = rules.find({taken, hits});
    if (known != rules.end()) return builder_.ref(known->second);
    const GrammarBuilder::RuleId rule = builder_.declare("items");
    rules.emplace(std::pair{taken, hits}, rule);
    std::vector<Expr> ways;
    if (taken >= least && hits >= least_hits) ways.push_back(taken > 0 ? json_.space() : builder_.empty());
    if (most == GrammarBuilder::kUnbounded || taken < most) {
      const Expr begin = taken > 0 ? comma : builder_.empty();
      const Item& item = kinds[std::min(static_cast<size_t>(taken), prefix.size())];
      if (!most_hits || hits < *most_hits)
        ways.push_back(builder_.sequence({begin, item.hit, from(taken + 1, hits + 1)}));
      ways.push_back(builder_.sequence({begin, item.miss, from(taken + 1, hits)}));
    }
    builder_.define(rule, builder_.either(std::move(ways)));
    return builder_.ref(rule);
  };
  return from(0, 0);
}

}  // namespace qwench
