#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/json.h"

namespace qwench {

/// The fields of one object of a tokenizer.json, with errors that name the file and the way to the field.
class Fields {
 public:
  /// `where` is the file and the path to the object. Throws Error (malformed) when `object` is not one.
  Fields(const Json& object, std::string where);

  const std::string& where() const { return where_; }
  std::string at(std::string_view name) const { return where_ + "." + std::string(name); }

  bool has(std::string_view name) const;  ///< present and not null
  const Json& get(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  bool flag(std::string_view name) const;
  int64_t number(std::string_view name, int64_t lowest, int64_t highest) const;
  const Json& list(std::string_view name) const;
  std::string type() const { return text("type"); }

  /// Says (as a warning) which other fields there are: they are not used.
  void only(std::initializer_list<std::string_view> known) const;

  /// Throws Error (unsupported) that names the type found and those supported.
  [[noreturn]] void unknown_type(std::string_view kind, std::string_view supported) const;
  [[noreturn]] void fail(std::string_view name, const std::string& problem) const;  ///< malformed

 private:
  const Json& object_;
  std::string where_;
};

}  // namespace qwench
