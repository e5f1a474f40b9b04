#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "tokenizer_files.h"

// Small tokenizer.json files, one for each normalizer, pre-tokenizer, kind of pattern, model option, flag of
// an added token, post-processor and decoder, against what Hugging Face tokenizers makes of the same texts
// (tools/generate_tokenizer_cases.py).

namespace qwench {
namespace {

using test::difference;

nlohmann::json tokenizer_json(const nlohmann::json& all, const nlohmann::json& one) {
  nlohmann::json json = one.at("tokenizer");
  json["version"] = "1.0";
  json["model"] = all.at("models").at(one.at("model").get<std::string>());
  json["model"].update(one.at("model_fields"));
  return json;
}

/// QWENCH_TOKENIZER_CASES names another file of the same form, for wider searches.
std::filesystem::path cases_file() {
  const char* other = std::getenv("QWENCH_TOKENIZER_CASES");
  return other ? std::filesystem::path(other) : test::tokenizer_data("cases.json");
}

void expect_ids(const std::string& name, const std::string& text, const nlohmann::json& row,
                const char* field, const std::vector<TokenId>& found) {
  const auto expected = row.value(field, row.at("ids")).get<std::vector<TokenId>>();
  EXPECT_EQ(found, expected) << name << ", " << field << " of " << nlohmann::json(text).dump(-1, ' ', true)
                             << ": " << difference(found, expected);
}

std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const std::vector<TokenId>& ids,
                     bool skip_special) {
  Detokenizer stream(tokenizer, skip_special);
  std::string out;
  for (const TokenId id : ids) out += stream.push(id);
  return out + stream.finish();
}

TEST(TokenizerCases, EverythingATokenizerJsonCanAskForEqualsTheReference) {
  const auto all = nlohmann::json::parse(test::read_file(cases_file()));
  const auto texts = all.at("texts").get<std::vector<std::string>>();
  ASSERT_GE(all.at("cases").size(), 150U);
  size_t rows = 0;
  size_t passed = 0;
  for (const auto& one : all.at("cases")) {
    const std::string name = one.at("name");
    SCOPED_TRACE(name);
    const auto tokenizer = Tokenizer::from_json_text(tokenizer_json(all, one).dump(), name);
    ASSERT_EQ(one.at("rows").size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto& row = one.at("rows")[i];
      const auto ids = tokenizer->encode(texts[i], SpecialTokens::all);
      if (row.is_null()) {  // the reference crashes here
        streamed(tokenizer, ids, false);
        continue;
      }
      ++rows;
      const int failures =
          testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
      expect_ids(name, texts[i], row, "ids", ids);
      expect_ids(name, texts[i], row, "ids_no_special",
                 tokenizer->encode(texts[i], SpecialTokens::non_special));
      expect_ids(name, texts[i], row, "ids_plain", tokenizer->encode(texts[i], SpecialTokens::none));
      expect_ids(name, texts[i], row, "ids_processed", tokenizer->add_special(ids));
      const auto expected = row.at("ids").get<std::vector<TokenId>>();
      const std::string decoded = row.value("decoded", texts[i]);
      EXPECT_EQ(tokenizer->decode(expected, false), decoded) << name;
      EXPECT_EQ(streamed(tokenizer, expected, true), row.value("decoded_skip_special", decoded)) << name;
      const std::vector<ByteSpan> whole{{0, texts[i].size()}};
      expect_ids(name, texts[i], row, "ids", tokenizer->encode(texts[i], whole));
      if (failures == testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count())
        ++passed;
    }
    for (const auto& row : one.at("decodes")) {
      ++rows;
      const auto ids = row.at("ids").get<std::vector<TokenId>>();
      const std::string found = tokenizer->decode(ids, false);
      EXPECT_EQ(found, row.at("decoded").get<std::string>()) << name << ", ids " << row.at("ids");
      passed += found == row.at("decoded").get<std::string>();
    }
  }
  std::printf("tokenizer cases: %zu of %zu rows of %zu files\n", passed, rows, all.at("cases").size());
}

}  // namespace
}  // namespace qwench
