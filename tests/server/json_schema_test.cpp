#include "server/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/openapi.h"
#include "server/request_fields.h"
#include "server/routes.h"

namespace qwench::server {
namespace {

/// "" where the value is accepted.
std::string complaint(const char* value, const char* schema) {
  try {
    check_schema(Json::parse(value), Json::parse(schema), "x");
  } catch (const ApiError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonSchema, SaysWhatWasFoundAndWhatWasExpected) {
  EXPECT_EQ(complaint("3", R"({"type": "number", "minimum": 0, "maximum": 2})"),
            "x: found 3, expected a number from 0 to 2");
  EXPECT_EQ(complaint("\"a\"", R"({"enum": ["b", "c"]})"), "x: found \"a\", expected \"b\" or \"c\"");
  EXPECT_EQ(complaint("[1]", R"({"type": "array", "items": {"type": "string"}})"),
            "x[0]: found 1, expected a string");
  EXPECT_EQ(complaint("{}", R"({"type": "object", "required": ["y"]})"), "x.y: this field is missing");
  EXPECT_EQ(complaint("1", R"({"type": "null", "description": "not supported"})"), "x: not supported");
}

TEST(JsonSchema, WholeNumbersMayBeWrittenWithAPoint) {
  EXPECT_EQ(complaint("2.0", R"({"type": "integer", "minimum": 0, "maximum": 2})"), "");
  EXPECT_NE(complaint("2.5", R"({"type": "integer"})"), "");
}

TEST(JsonSchema, LimitsOf64BitsAreExact) {
  const char* schema =
      R"({"type": "integer", "minimum": -9223372036854775808, "maximum": 18446744073709551615})";
  EXPECT_EQ(complaint("18446744073709551615", schema), "");
  EXPECT_EQ(complaint("-9223372036854775808", schema), "");
  EXPECT_NE(complaint("1e20", schema), "");
}

TEST(JsonSchema, LengthIsCountedInCharacters) {
  EXPECT_EQ(complaint("\"\u00e4\u00f6\"", R"({"type": "string", "maxLength": 2})"), "");
  EXPECT_NE(complaint("\"abc\"", R"({"type": "string", "maxLength": 2})"), "");
}

/// Every schema inside one, with its path.
void visit(const Json& schema, const std::string& path,
           const std::function<void(const Json&, const std::string&)>& see) {
  see(schema, path);
  for (const char* inside : {"items", "additionalProperties"}) {
    if (schema.contains(inside) && schema[inside].is_object())
      visit(schema[inside], path + "/" + inside, see);
  }
  if (schema.contains("properties")) {
    for (const auto& [name, property] : schema["properties"].items()) visit(property, path + "/" + name, see);
  }
  if (schema.contains("anyOf")) {
    for (const Json& one : schema["anyOf"]) visit(one, path + "/anyOf", see);
  }
}

TEST(RequestFields, EverySchemaIsWellFormed) {
  int count = 0;
  for (const Json* fields : {&chat_fields(), &completion_fields(), &tokenize_fields(), &detokenize_fields(),
                             &apply_template_fields()}) {
    EXPECT_EQ((*fields)["additionalProperties"], false);
    visit(*fields, "", [&](const Json& schema, const std::string& path) {
      ++count;
      ASSERT_TRUE(schema.is_object()) << path << " " << schema;
      EXPECT_TRUE(schema.contains("type") || schema.contains("enum") || schema.contains("anyOf")) << path;
      for (const char* list : {"enum", "required", "anyOf"}) {
        EXPECT_TRUE(!schema.contains(list) || schema[list].is_array()) << path << " " << schema;
      }
    });
  }
  EXPECT_GT(count, 150);
}

TEST(RequestFields, EveryFieldHasADescription) {
  for (const Json* fields :
       {&chat_fields(), &completion_fields(), &tokenize_fields(), &detokenize_fields()}) {
    for (const auto& [name, schema] : (*fields)["properties"].items())
      EXPECT_TRUE(schema.contains("description") && !schema["description"].get<std::string>().empty())
          << name;
  }
}

TEST(OpenApi, DescribesEveryRouteAndItsReferencesLead) {
  const Json& document = openapi_document();
  for (const Route& route : routes()) {
    const std::string path(route.path);
    ASSERT_TRUE(document["paths"].contains(path)) << path;
    EXPECT_TRUE(document["paths"][path].contains(route.method == "GET" ? "get" : "post")) << path;
  }
  EXPECT_EQ(document["paths"].size(), routes().size());
  const std::string text = document.dump();
  const std::string mark = "#/components/schemas/";
  int references = 0;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const size_t begin = at + mark.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    EXPECT_TRUE(document["components"]["schemas"].contains(name)) << name;
    ++references;
  }
  EXPECT_GT(references, 20);
  EXPECT_EQ(document["components"]["schemas"]["ChatCompletionRequest"], chat_fields());
}

TEST(Routes, AreFoundByPath) {
  EXPECT_EQ(find_route("/v1/models")->path, "/v1/models");
  EXPECT_EQ(find_route("/v1/models/Qwen/Qwen3-0.6B")->path, "/v1/models/{model}");
  EXPECT_EQ(find_route("/v1/models/"), nullptr);
  EXPECT_EQ(find_route("/v1/chat"), nullptr);
  EXPECT_EQ(find_route(""), nullptr);
}

}  // namespace
}  // namespace qwench::server
