#pragma once

#include <set>
#include <string>

#include "core/json.h"
#include "grammar/schema_document.h"

namespace qwench {

/// Says of given values whether they are valid under a schema (JSON Schema, draft 2020-12), as its compiled
/// grammar would of their texts: for what "enum" and "const" list. Throws as SchemaDocument does for
/// references that lead nowhere, and for schemas that ask too much.
class SchemaValidator {
 public:
  /// `document` must outlive this.
  explicit SchemaValidator(const SchemaDocument& document) : document_(document) {}

  bool is_valid(const Json& value, const Json& schema, const std::string& path);

 private:
  /// What of an object or an array the keywords of a schema have looked at.
  struct Evaluated {
    std::set<std::string> names;
    std::set<size_t> items;
    void add(const Evaluated& other) {
      names.insert(other.names.begin(), other.names.end());
      items.insert(other.items.begin(), other.items.end());
    }
  };

  bool check(const Json& value, const Json& schema, const std::string& path, Evaluated& seen);
  bool check_number(const Json& value, const Json& schema, const std::string& path) const;
  bool check_string(const std::string& value, const Json& schema, const std::string& path) const;
  bool check_object(const Json& value, const Json& schema, const std::string& path, Evaluated& seen);
  bool check_array(const Json& value, const Json& schema, const std::string& path, Evaluated& seen);
  bool check_in_place(const Json& value, const Json& schema, const std::string& path, Evaluated& seen);
  bool check_rest(const Json& value, const Json& schema, const std::string& path, Evaluated& seen);

  const SchemaDocument& document_;
  int depth_ = 0;
  int spent_ = 0;
};

}  // namespace qwench
