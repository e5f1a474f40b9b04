#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "grammar/grammar_builder.h"
#include "grammar/json_text.h"
#include "grammar/number_range.h"
#include "grammar/regex_parser.h"
#include "grammar/schema_document.h"
#include "grammar/text_product.h"

namespace qwench {

/// What may be asked of a string.
struct StringCondition {
  enum class Kind {
    pattern,  ///< `value`: a pattern, found somewhere
    format,   ///< the name of a format
    length,   ///< [least, most]; most -1: unbounded
    values,   ///< a list; what is no string is passed over
    schema,   ///< a JSON Schema
    kind,     ///< of texts by their kind, see texts_of_kind(): those that have this bit set
  };
  Kind kind;
  Json value;
  bool holds;         ///< else it must not
  std::string place;  ///< behind the schema's, for errors
};

/// How the characters of a string are written.
enum class StringSpelling { json, plain_without_less_than };

/// Turns one JSON Schema into expressions; see json_schema.h.
class SchemaCompiler {
 public:
  using Expr = GrammarBuilder::Expr;

  SchemaCompiler(GrammarBuilder& builder, JsonText& json, const Json& root)
      : builder_(builder), json_(json), root_(root), document_(builder, root) {}

  Expr compile_root() { return compile(root_, "#"); }
  Expr compile_as_object();  ///< of the root's values, the objects
  Expr compile(const Json& schema, const std::string& path);
  /// What a string of a flattened schema may hold, each character written by `encode`: absent where anything.
  /// `encode` writes as `spelling` says.
  std::optional<Expr> string_content(const Json& schema, const EncodeChars& encode, const std::string& path,
                                     StringSpelling spelling = StringSpelling::json);

 private:
  static constexpr size_t kMostNameClasses = 32;
  /// Names are of one of these many kinds, so that names of two kinds are two names.
  static constexpr int kKindBits = 3;
  struct Members;
  /// Members that are not declared: absent, or one of them, and the same by the kind of its name where those
  /// are asked for.
  struct Others {
    std::optional<Expr> any;
    std::vector<Expr> of_kind;
  };
  struct Property {
    std::string name;
    Expr member;  // key, colon and value
    bool required;
  };

  Expr compile_ref(const std::string& ref, const std::string& path);
  Expr compile_merged(const Json& schema, const std::string& path);
  Expr compile_flat(const Json& schema, const std::string& path);
  Expr compile_branches(const Json& schema, const char* keyword, const std::string& path);
  Expr compile_type(const Json& schema, const std::string& type, const std::string& path);
  void check_types(const Json& schema, const std::string& path) const;

  Expr compile_string(const Json& schema, const std::string& path);
  std::vector<StringCondition> string_conditions(const Json& schema, const std::string& path) const;
  Expr string_condition(GrammarBuilder& builder, const EncodeChars& encode, const StringCondition& condition,
                        const std::string& path) const;
  Expr strings_without_quotes(const Json& schema, const EncodeChars& encode, const std::string& path);
  /// A bit for each condition.
  TextProduct string_product(const std::vector<StringCondition>& conditions, const std::string& path,
                             StringSpelling spelling = StringSpelling::json);
  Expr compile_number(const Json& schema, bool integer, const std::string& path);
  Expr numbers(const Json& schema, bool integer, const std::string& path);
  std::optional<NumberBound> bound(const Json& schema, const char* inclusive, const char* exclusive,
                                   bool lower, const std::string& path) const;

  Expr compile_object(const Json& schema, const std::string& path);
  Members read_members(const Json& schema, const std::string& path) const;
  Json value_of(const Members& members, const std::string& name, const std::string& path) const;
  std::vector<Property> properties_of(const Members& members, const std::string& path);
  Others other_members(const Members& members, const std::vector<Property>& properties, bool by_kind,
                       const std::string& path);
  Expr members_in_order(const std::vector<Property>& properties, std::optional<Expr> others, int most_others);
  Expr members_counted(const std::vector<Property>& properties, const Others& others, int least,
                       std::optional<int> most, const std::string& path);
  Expr others_of_kinds(const Others& others, int kinds, std::optional<int> most, bool first);
  Expr compile_array(const Json& given, const std::string& path);
  Expr unique_items(const Json& schema, int least, int most, const std::string& path);
  Expr items_containing(const Json& schema, int least, int most, const std::string& path);

  /// A count such as minLength, at least 0.
  std::optional<int> count(const Json& schema, const char* keyword, const std::string& path) const;
  [[noreturn]] void fail(const std::string& path, const std::string& sentence) const {
    document_.fail(path, sentence);
  }

  GrammarBuilder& builder_;
  JsonText& json_;
  const Json& root_;
  SchemaDocument document_;
  std::map<std::string, GrammarBuilder::RuleId> refs_;    // by what "$ref" says
  std::map<std::string, GrammarBuilder::RuleId> merged_;  // by the text of the merged schema
  std::map<std::string, Expr> numbers_;                   // by what is asked of them
  int depth_ = 0;
};

}  // namespace qwench
