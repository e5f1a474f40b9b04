#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "grammar/json_schema.h"

namespace qwench {

struct SchemaCase {
  const char* schema;
  std::vector<const char*> accepted;
  std::vector<const char*> refused;
};

inline void check(const std::vector<SchemaCase>& cases) {
  for (const SchemaCase& one : cases) {
    SCOPED_TRACE(one.schema);
    const auto grammar = compile_json_schema(std::string_view(one.schema));
    for (const char* text : one.accepted) EXPECT_TRUE(accepts(*grammar, text)) << text;
    for (const char* text : one.refused) EXPECT_FALSE(accepts(*grammar, text)) << text;
  }
}

}  // namespace qwench
