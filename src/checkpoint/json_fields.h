#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "qwench/sampling.h"

namespace qwench {

/// Typed, checked access to the fields of a JSON object from an untrusted file. A field at null counts as
/// absent. Each failure is an Error (malformed) that names the file, the field, the value found and what was
/// expected.
class JsonFields {
 public:
  /// `what` names the file, or the object in it, in errors. `json` must outlive this.
  JsonFields(const Json& json, std::string what);

  const std::string& what() const { return what_; }
  const Json* find(const char* key) const;  ///< null when absent
  bool has(const char* key) const { return find(key) != nullptr; }
  bool is_null(const char* key) const;  ///< written, and null

  int64_t required_integer(const char* key, int64_t low, int64_t high) const;
  std::optional<int64_t> integer(const char* key, int64_t low, int64_t high) const;
  std::optional<double> number(const char* key) const;  ///< finite
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> string(const char* key) const;
  std::optional<std::vector<std::string>> strings(const char* key) const;
  std::optional<TokenId> token_id(const char* key) const;
  std::vector<TokenId> token_ids(const char* key) const;  ///< one id or a list of them; empty when absent

  /// "config.json: `hidden_size` is "16", expected ..."
  [[noreturn]] void wrong(const char* key, const Json& value, const std::string& expected) const;

 private:
  const Json& json_;
  std::string what_;
};

/// A JSON value for an error message: short values whole, long ones by their kind.
std::string printable_json(const Json& value);

}  // namespace qwench
