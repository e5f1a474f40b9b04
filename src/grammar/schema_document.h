#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "grammar/grammar_builder.h"

namespace qwench {

/// A list of assertions on the same string or number, each of which must hold: what schemas that were joined
/// say twice, {"pattern"} and {"format"}, and what must not be, {"not": {"pattern"}} and {"not": {"enum"}}.
/// Of flattened schemas alone.
inline constexpr const char* kAlso =
    "\x01"
    "also";

/// Names of "properties" that not, and what stands beside it, speak of: they count as not evaluated. Of
/// flattened schemas alone, as the next.
inline constexpr const char* kUnevaluated =
    "\x01"
    "unevaluated";
/// Whether what else is not evaluated is unknown.
inline constexpr const char* kUnclear =
    "\x01"
    "unclear";

/// Whether two values are equal as JSON Schema has it: the order of members means nothing.
bool same_value(const Json& a, const Json& b);
/// Whether a value of `list`, an array, is the same as `value`.
bool has_value(const Json& list, const Json& value);

/// A JSON Schema and its references. "$ref" and "allOf" are merged into what they stand beside, and so is
/// what "not", "if" and "dependentRequired" and their like say, as alternatives. "unevaluatedProperties" and
/// "unevaluatedItems" become "additionalProperties" and "items", which speak of the same there.
class SchemaDocument {
 public:
  /// Throws by builder.fail; `root`, of with_resolved_references(), must outlive this.
  SchemaDocument(const GrammarBuilder& builder, const Json& root) : builder_(builder), root_(root) {}

  /// What a "$ref" names, or a "$dynamicRef". `path` is for errors.
  const Json& resolve(const std::string& ref, const std::string& path) const;
  /// Whether a match of the pattern is found in the text.
  bool matches(const std::string& pattern, const std::string& text, const std::string& path) const;
  bool is_valid(const Json& value, const Json& schema, const std::string& path) const;
  /// The values of "enum" or "const" that are valid under the schema beside them, each once; empty where
  /// there is neither.
  std::optional<Json> valid_values(const Json& schema, const std::string& path) const;
  /// The same schema without all that flattens; false where no value is valid.
  Json flatten(const Json& schema, const std::string& path, int depth = 0) const;
  /// What is valid under both; keywords that cannot be joined are refused.
  Json merge(const Json& a, const Json& b, const std::string& path, int depth = 0) const;

  /// What is valid where `schema` is not; throws for keywords whose opposite cannot be said.
  Json negate(const Json& schema, const std::string& path, int depth = 0) const;
  /// Each of `branches` where none of the other `alternatives` is valid; the branches are what they make of
  /// the schema that they stand in. Throws as negate() does.
  std::vector<Json> exclusive(const std::vector<Json>& branches, const Json& alternatives,
                              const std::string& path, int depth = 0) const;
  /// All values that are valid, where they are few and evident: listed ones, booleans, null, whole numbers of
  /// a range, and alternatives of these.
  std::optional<Json> all_values(const Json& schema, const std::string& path, int depth = 0) const;
  /// What a flattened schema is with each of the alternatives of its "anyOf" or "oneOf"; of "oneOf"
  /// exclusive().
  std::vector<Json> alternatives(const Json& schema, const char* keyword, const std::string& path,
                                 int depth = 0) const;
  /// Whether it has a keyword that flatten() resolves.
  static bool flattens(const Json& schema);

  [[noreturn]] void fail(const std::string& path, const std::string& sentence) const;

 private:
  static constexpr int kDeepestMerge = 64;

  Json apply_conditions(Json schema, const std::string& path, int depth) const;
  Json without(const Json& base, const Json& schema, const std::string& path, int depth) const;
  void add_breaks(const Json& schema, const std::string& keyword, const Json& value, Json& ways,
                  const std::string& path, int depth) const;
  Json with_others_as_pattern(Json schema, const std::string& path) const;
  void merge_patterns(Json& into, const Json& b, const std::string& path, int depth) const;
  void merge_keyword(Json& into, const std::string& keyword, const Json& value, const std::string& path,
                     int depth) const;
  void spend(const std::string& path) const;
  Json close(const Json& flat, const Json& schema, const std::string& path, int depth) const;
  void close_properties(Json& flat, const Json& rest, const std::string& path, int depth) const;
  void merge_objects(Json& into, const Json& b, const std::string& path, int depth) const;
  void merge_items(Json& into, const Json& b, const std::string& path, int depth) const;

  const GrammarBuilder& builder_;
  const Json& root_;
  mutable std::map<std::string, std::shared_ptr<const Grammar>> patterns_;
  mutable int spent_ = 0;  // merges so far: references to references could double without end
};

/// The types that a value of "type" names.
std::set<std::string> declared_types(const Json& type);
/// The types a schema takes: those of "type", else those its keywords speak of, else all.
std::set<std::string> types_of(const Json& schema);
inline bool is_true(const Json& schema) { return schema.is_boolean() && schema.get<bool>(); }
inline bool is_false(const Json& schema) { return schema.is_boolean() && !schema.get<bool>(); }
/// "null", "boolean", "string", "number", "object" or "array".
const char* type_of(const Json& value);
/// Older drafts have tuples as an array of "items", "additionalItems" behind them.
Json with_prefix_items(Json schema);
/// Keywords that say nothing about which values are valid.
bool is_annotation(const std::string& keyword);
bool has_assertions(const Json& schema);

/// Whether it is evident that no value is valid under both of two flattened schemas.
bool are_disjoint(const SchemaDocument& document, const Json& a, const Json& b, const std::string& path,
                  int depth = 0);

}  // namespace qwench
