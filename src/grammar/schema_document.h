#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/json.h"
#include "grammar/grammar_builder.h"

namespace qwench {

/// A JSON Schema and its references. "$ref" and "allOf" are merged into what they stand beside.
class SchemaDocument {
 public:
  /// Throws by builder.fail; `root` must outlive this.
  SchemaDocument(const GrammarBuilder& builder, const Json& root) : builder_(builder), root_(root) {}

  /// What a "$ref" names. `path` is for errors.
  const Json& resolve(const std::string& ref, const std::string& path) const;
  /// The same schema without "$ref" and "allOf"; false where no value is valid.
  Json flatten(const Json& schema, const std::string& path, int depth = 0) const;
  /// What is valid under both; keywords that cannot be joined are refused.
  Json merge(const Json& a, const Json& b, const std::string& path, int depth = 0) const;

  [[noreturn]] void fail(const std::string& path, const std::string& sentence) const;

 private:
  void spend(const std::string& path) const;
  void merge_objects(Json& into, const Json& b, const std::string& path, int depth) const;
  void merge_items(Json& into, const Json& b, const std::string& path, int depth) const;

  const GrammarBuilder& builder_;
  const Json& root_;
  mutable int spent_ = 0;  // merges so far: references to references could double without end
};

/// The types a schema takes: those of "type", else those its keywords speak of, else all.
std::set<std::string> types_of(const Json& schema);
/// Keywords that say nothing about which values are valid.
bool is_annotation(const std::string& keyword);
bool has_assertions(const Json& schema);

/// Whether it is evident that no value is valid under both of two flattened schemas.
bool are_disjoint(const SchemaDocument& document, const Json& a, const Json& b, const std::string& path,
                  int depth = 0);

}  // namespace qwench
