#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "grammar/lookaheads.h"
#include "grammar/schema_compiler.h"
#include "grammar/text_product.h"
#include "qwench/error.h"

namespace qwench {
namespace {

const Json* keyword_of(const Json& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

}  // namespace

/// What an object's schema says of its properties.
struct SchemaCompiler::Members {
  Json declared = Json::object();
  std::vector<std::string> required;  // ascending
  Json patterns = Json::object();
  Json names = true;       // what a name must be
  Json additional = true;  // the value of a property that is neither declared nor of a pattern
  bool written = false;    // whether such ones are written, where they may be
};

SchemaCompiler::Members SchemaCompiler::read_members(const Json& schema, const std::string& path) const {
  Members members;
  if (const Json* required = keyword_of(schema, "required")) {
    if (!required->is_array()) fail(path, "required: expected an array of names");
    for (const Json& name : *required) {
      if (!name.is_string()) fail(path, "required: expected an array of names");
      members.required.push_back(name.get<std::string>());
    }
    std::sort(members.required.begin(), members.required.end());
    members.required.erase(std::unique(members.required.begin(), members.required.end()),
                           members.required.end());
  }
  if (const Json* declared = keyword_of(schema, "properties")) members.declared = *declared;
  if (const Json* patterns = keyword_of(schema, "patternProperties")) members.patterns = *patterns;
  if (!members.declared.is_object()) fail(path, "properties: expected an object");
  if (!members.patterns.is_object()) fail(path, "patternProperties: expected an object");
  if (const Json* names = keyword_of(schema, "propertyNames")) members.names = *names;
  // Properties that nobody speaks of are valid unless they are forbidden, but written only where the schema
  // asks for them, also by a count, or speaks of none.
  const bool speaks =
      !members.patterns.empty() || std::any_of(members.declared.begin(), members.declared.end(),
                                               [](const Json& one) { return !is_false(one); });
  const auto may_be = std::count_if(members.declared.begin(), members.declared.end(),
                                    [](const Json& one) { return !is_false(one); });
  members.written = !speaks || count(schema, "minProperties", path).value_or(0) > may_be;
  if (const Json* additional = keyword_of(schema, "additionalProperties")) {
    if (!additional->is_boolean() && !additional->is_object())
      fail(path, "additionalProperties: expected a schema: an object, true or false");
    members.additional = *additional;
    members.written = !is_false(*additional);
  }
  return members;
}

/// The schema of a property's value: what is declared, and what patterns say of its name.
Json SchemaCompiler::value_of(const Members& members, const std::string& name,
                              const std::string& path) const {
  bool spoken_of = members.declared.contains(name);
  Json value = spoken_of ? members.declared[name] : Json(true);
  for (const auto& [pattern, schema] : members.patterns.items()) {
    if (!document_.matches(pattern, name, fmt::format("{}/patternProperties/{}", path, pattern))) continue;
    value = spoken_of ? document_.merge(value, schema, path) : schema;
    spoken_of = true;
  }
  if (!spoken_of) value = members.additional;
  if (!document_.is_valid(Json(name), members.names, path + "/propertyNames")) value = false;
  return value;
}

std::vector<SchemaCompiler::Property> SchemaCompiler::properties_of(const Members& members,
                                                                    const std::string& path) {
  std::vector<std::string> names;
  for (const auto& [name, value] : members.declared.items()) names.push_back(name);
  for (const std::string& name : members.required) {
    if (!members.declared.contains(name)) names.push_back(name);
  }
  std::vector<Property> properties;
  for (const std::string& name : names) {
    const std::string place = fmt::format("{}/properties/{}", path, name);
    const Json value = value_of(members, name, path);
    const bool required = std::binary_search(members.required.begin(), members.required.end(), name);
    if (is_false(value) && !required) continue;
    const Expr member =
        builder_.sequence({json_.quoted(name), json_.member(), builder_.rule(place, compile(value, place))});
    properties.push_back({name, member, required});
  }
  return properties;
}

/// Members that are not declared, if there may be any.
SchemaCompiler::Others SchemaCompiler::other_members(const Members& members,
                                                     const std::vector<Property>& properties, bool by_kind,
                                                     const std::string& path) {
  std::set<std::string> taken;
  for (const Property& property : properties) taken.insert(property.name);
  for (const auto& [name, value] : members.declared.items()) taken.insert(name);
  const auto value_rule = [&](const Json& value, const std::string& place) {
    return builder_.rule(place, compile(value, place));
  };
  const std::string place = path + "/additionalProperties";
  if (members.patterns.empty() && members.names == Json(true)) {
    if (!members.written) return {};
    if (!by_kind) {
      const Expr key = taken.empty() ? json_.string()
                                     : builder_.rule(place, json_.other_key({taken.begin(), taken.end()}));
      return {builder_.sequence({key, json_.member(), value_rule(members.additional, place)}), {}};
    }
  }

  struct Pattern {
    Json value;
    uint32_t parts = 0;  // bits of its parts, and which of them are set where it matches
    uint32_t wanted = 0;
  };
  std::vector<Pattern> patterns;
  std::vector<StringCondition> conditions;
  for (const auto& [text, schema] : members.patterns.items()) {
    Pattern pattern{schema};
    for (const PatternPart& part : split_lookaheads(text)) {
      const uint32_t bit = uint32_t{1} << std::min(conditions.size(), TextProduct::kMostConditions - 1);
      pattern.parts |= bit;
      if (part.holds) pattern.wanted |= bit;
      conditions.push_back(
          {StringCondition::Kind::pattern, part.pattern, false, "/patternProperties/" + text});
    }
    patterns.push_back(std::move(pattern));
  }
  conditions.push_back(
      {StringCondition::Kind::values, Json(std::vector<std::string>(taken.begin(), taken.end())), false, ""});
  const uint32_t is_taken = uint32_t{1} << std::min(conditions.size() - 1, TextProduct::kMostConditions - 1);
  uint32_t fits = 0;
  if (members.names != Json(true)) {
    fits = is_taken << 1;
    conditions.push_back({StringCondition::Kind::schema, members.names, true, "/propertyNames"});
  }
  const size_t first_kind_bit = conditions.size();
  for (int bit = 0; by_kind && bit < kKindBits; ++bit)
    conditions.push_back({StringCondition::Kind::kind, bit, false, ""});
  TextProduct product = string_product(conditions, path);
  const uint32_t other_bits = by_kind ? (uint32_t{1} << first_kind_bit) - 1 : ~uint32_t{0};
  std::map<uint32_t, std::vector<Expr>> ways;  // by the kind
  std::map<uint32_t, Expr> value_rules;        // by what else is met
  for (const uint32_t met : product.classes()) {
    if ((met & is_taken) != 0 || (met & fits) != fits) continue;
    Json value = true;
    bool of_pattern = false;
    for (const Pattern& pattern : patterns) {
      if ((met & pattern.parts) != pattern.wanted) continue;
      value = of_pattern ? document_.merge(value, pattern.value, path) : pattern.value;
      of_pattern = true;
    }
    if (!of_pattern && !members.written) continue;
    if (!of_pattern) value = members.additional;
    if (is_false(value)) continue;
    const uint32_t others_met = met & other_bits;
    if (value_rules.count(others_met) == 0) {
      if (value_rules.size() >= kMostNameClasses)
        fail(path, "patternProperties: its patterns overlap in too many ways");
      value_rules[others_met] = value_rule(value, of_pattern ? path + "/patternProperties" : place);
    }
    const Expr quote = builder_.literal("\"");
    const Expr name = product.texts([&](uint32_t other) { return other == met; });
    ways[by_kind ? met >> first_kind_bit : 0].push_back(
        builder_.sequence({quote, name, quote, json_.member(), value_rules[others_met]}));
  }
  Others others;
  for (auto& [kind, members_of_kind] : ways)
    others.of_kind.push_back(builder_.rule(place, builder_.either(std::move(members_of_kind))));
  if (!others.of_kind.empty()) others.any = builder_.rule(place, builder_.either(others.of_kind));
  return others;
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

/// Others until their names are of so many kinds, and then any; at most `most`. Where not `first`, a comma
/// before each.
GrammarBuilder::Expr SchemaCompiler::others_of_kinds(const Others& others, int kinds, std::optional<int> most,
                                                     bool first) {
  const Expr comma = json_.comma();
  std::map<std::pair<uint32_t, int>, Expr> known;
  const std::function<Expr(uint32_t, int)> from = [&](uint32_t seen, int written) -> Expr {
    const int count = std::popcount(seen);
    if (!most) written = std::min(written, 1);
    if (const auto found = known.find({seen, written}); found != known.end()) return found->second;
    if (count >= kinds) {
      const int more = most ? *most - written : GrammarBuilder::kUnbounded;
      return known[{seen, written}] = builder_.rule(
                 "members",
                 builder_.sequence(
                     {builder_.repeat(builder_.sequence({comma, *others.any}), 0, more), json_.space()}));
    }
    const GrammarBuilder::RuleId rule = builder_.declare("members");
    known[{seen, written}] = builder_.ref(rule);
    std::vector<Expr> ways;
    for (size_t kind = 0; kind < others.of_kind.size(); ++kind) {
      const uint32_t then = seen | uint32_t{1} << kind;
      if (most && *most - written - 1 < kinds - std::popcount(then)) continue;
      ways.push_back(builder_.sequence(
          {first && written == 0 ? builder_.empty() : comma, others.of_kind[kind], from(then, written + 1)}));
    }
    builder_.define(rule, builder_.either(std::move(ways)));
    return builder_.ref(rule);
  };
  return from(0, 0);
}

/// The same with a count: declared members that are left out make room for, or call for, others. A name of
/// others may come twice, and then counts once: of several that are called for, the names are of several
/// kinds.
GrammarBuilder::Expr SchemaCompiler::members_counted(const std::vector<Property>& properties,
                                                     const Others& others, int least, std::optional<int> most,
                                                     const std::string& path) {
  constexpr size_t kMostMembers = 200;
  const size_t count = properties.size();
  if (count > kMostMembers)
    fail(path, fmt::format("minProperties and maxProperties are not supported beside more than {} properties",
                           kMostMembers));
  const Expr comma = json_.comma();
  std::map<std::pair<size_t, int>, GrammarBuilder::RuleId> rules;
  const std::function<Expr(size_t, int)> from = [&](size_t at, int taken) -> Expr {
    if (!most) taken = std::min(taken, std::max(least, 1));
    const auto known = rules.find({at, taken});
    if (known != rules.end()) return builder_.ref(known->second);
    const GrammarBuilder::RuleId rule = builder_.declare("members");
    rules.emplace(std::pair{at, taken}, rule);
    std::vector<Expr> ways;
    if (at < count) {
      const Property& property = properties[at];
      if (!property.required) ways.push_back(from(at + 1, taken));
      if (!most || taken < *most) {
        ways.push_back(builder_.sequence(
            {taken > 0 ? comma : builder_.empty(), property.member, from(at + 1, taken + 1)}));
      }
    } else {
      if (taken >= least) ways.push_back(taken > 0 ? json_.space() : builder_.empty());
      if (others.any && taken + 1 >= least && (!most || taken < *most)) {
        const int more = most ? *most - taken - 1 : GrammarBuilder::kUnbounded;
        ways.push_back(builder_.sequence({taken > 0 ? comma : builder_.empty(), *others.any,
                                          builder_.repeat(builder_.sequence({comma, *others.any}), 0, more),
                                          json_.space()}));
      }
      const int called_for = least - taken;
      if (called_for > 1 && called_for <= static_cast<int>(others.of_kind.size())) {
        const std::optional<int> room = most ? std::optional(*most - taken) : std::nullopt;
        ways.push_back(others_of_kinds(others, called_for, room, taken == 0));
      }
    }
    builder_.define(rule, builder_.either(std::move(ways)));
    return builder_.ref(rule);
  };
  return from(0, 0);
}

GrammarBuilder::Expr SchemaCompiler::compile_object(const Json& schema, const std::string& path) {
  const Members told = read_members(schema, path);
  const std::vector<Property> properties = properties_of(told, path);
  const int least = count(schema, "minProperties", path).value_or(0);
  const auto declared = static_cast<int>(properties.size());
  const auto required = static_cast<int>(
      std::count_if(properties.begin(), properties.end(), [](const Property& p) { return p.required; }));
  const Others others = other_members(told, properties, least > required + 1, path);
  const std::optional<int> most = count(schema, "maxProperties", path);
  if (most && (*most < required || *most < least)) return builder_.nothing();
  const auto told_apart = others.any ? std::max(static_cast<int>(others.of_kind.size()), 1) : 0;
  if (least > declared + told_apart)
    fail(path, fmt::format("minProperties: found {}, but {} properties are declared, and names of at most {} "
                           "others can be told apart",
                           least, declared, told_apart));
  const bool counts = least > required || (most && (others.any || *most < declared));
  const Expr members = counts ? members_counted(properties, others, least, most, path)
                              : members_in_order(properties, others.any, GrammarBuilder::kUnbounded);
  return builder_.sequence({builder_.literal("{"), json_.space(), members, builder_.literal("}")});
}

}  // namespace qwench
