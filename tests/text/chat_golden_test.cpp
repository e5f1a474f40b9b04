#include <gtest/gtest.h>

#include <cstdio>

#include "chat_goldens.h"

namespace qwench::chat_test {
namespace {

size_t code_points(const std::string& text, size_t bytes) {
  size_t count = 0;
  for (size_t i = 0; i < bytes; ++i) count += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

/// Renders a row and compares: text and spans, or the kind of error (and the sentence, where the template
/// gave it).
bool matches(const Json& row, const std::string& source) {
  const std::string name = row.at("name").get<std::string>();
  try {
    const RenderedPrompt prompt = ChatTemplate::parse(source, name).render(input_of(row));
    if (!row.contains("expected")) {
      ADD_FAILURE() << name << ": rendered " << prompt.text << "\nexpected the error "
                    << row.value("error", "");
      return false;
    }
    const std::string expected = row["expected"].get<std::string>();
    if (prompt.text != expected) {
      ADD_FAILURE() << name << "\nrendered: " << Json(prompt.text).dump()
                    << "\nexpected: " << Json(expected).dump();
      return false;
    }
    if (!row.contains("assistant_spans")) return true;
    Json spans = Json::array();
    for (const ByteSpan& span : prompt.assistant_spans) {
      spans.push_back({code_points(prompt.text, span.begin), code_points(prompt.text, span.end)});
    }
    EXPECT_EQ(spans, row["assistant_spans"]) << name;
    return spans == row["assistant_spans"];
  } catch (const TemplateError& error) {
    if (row.contains("expected")) {
      ADD_FAILURE() << name << ": " << error.what() << "\nexpected: " << row["expected"].dump();
      return false;
    }
    const std::string kind = row.at("error_kind").get<std::string>();
    bool fine = kind_name(error.template_kind()) == kind;
    if (kind == "raise_exception") fine = fine && error.message() == row["error"].get<std::string>();
    EXPECT_TRUE(fine) << name << ": " << kind_name(error.template_kind()) << ": " << error.what()
                      << "\nexpected " << kind << ": " << row["error"].dump();
    return fine;
  }
}

TEST(ChatGoldens, WholeTemplatesRenderByteForByte) {
  const auto rows = read_rows("cases.jsonl");
  size_t passed = 0;
  for (const Json& row : rows)
    passed += matches(row, template_source(row.at("template").get<std::string>())) ? 1 : 0;
  std::printf("chat goldens: %zu of %zu rows\n", passed, rows.size());
  EXPECT_EQ(rows.size(), 211U);
  EXPECT_EQ(passed, rows.size());
}

TEST(ChatGoldens, ExpressionsRenderByteForByte) {
  const auto rows = read_rows("expressions.jsonl");
  size_t passed = 0;
  for (const Json& row : rows) passed += matches(row, row.at("source").get<std::string>()) ? 1 : 0;
  std::printf("chat expression goldens: %zu of %zu rows\n", passed, rows.size());
  EXPECT_EQ(rows.size(), 917U);
  EXPECT_EQ(passed, rows.size());
}

/// Made by tools/jinja_differential.py --write: random expressions and statements, and what Jinja 2 gives for
/// them.
TEST(ChatGoldens, RandomTemplatesRenderAsJinjaRendersThem) {
  const auto rows = read_rows("random.jsonl");
  const Json& shared = rows.at(0);
  size_t passed = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    Json row = rows[i];
    row.update(shared);
    row["name"] = "random/" + std::to_string(i) + " " + row["source"].get<std::string>();
    passed += matches(row, row["source"].get<std::string>()) ? 1 : 0;
  }
  std::printf("random template goldens: %zu of %zu rows\n", passed, rows.size() - 1);
  EXPECT_EQ(rows.size(), 1801U);
  EXPECT_EQ(passed, rows.size() - 1);
}

}  // namespace
}  // namespace qwench::chat_test
