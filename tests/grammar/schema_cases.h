#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "grammar/json_schema.h"
#include "qwench/error.h"

namespace qwench {

struct SchemaCase {
  const char* schema;
  std::vector<const char*> accepted;
  std::vector<const char*> refused;
};

/// What a schema is refused with; empty where it is not.
inline std::string error_in_schema(const std::string& schema) {
  try {
    compile_json_schema(std::string_view(schema));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "";
}

inline void check(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& one : cases) {
    SCOPED_TRACE(one.schema);
    const auto grammar = compile_json_schema(std::string_view(one.schema));
    for (const char* text : one.accepted) EXPECT_TRUE(accepts(*grammar, text)) << text;
    for (const char* text : one.refused) EXPECT_FALSE(accepts(*grammar, text)) << text;
  }
}

}  // namespace qwench
