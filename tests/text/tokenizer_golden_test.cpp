#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "checkpoint/gguf.h"
#include "text/detokenizer.h"
#include "text/gguf_tokenizer.h"
#include "text/tokenizer.h"
#include "tokenizer_files.h"

// Every row of the goldens, which were made with Hugging Face tokenizers 0.23.3, for three published
// tokenizers and for the tokenizers inside two GGUF files.

namespace qwench {
namespace {

using test::cached;
using test::difference;
using test::read_jsonl;
using test::tokenizer_data;

struct Source {
  const char* name;  // of the goldens
  const char* file;  // in the cache
  bool gguf_flags;   // rows of gguf_flags.jsonl replace those of the same name
};

void PrintTo(const Source& source, std::ostream* out) { *out << source.file; }

std::shared_ptr<const Tokenizer> load(const Source& source) {
  const auto path = cached(source.file);
  if (path.extension() != ".gguf") return Tokenizer::from_folder(path);
  return Tokenizer::from_gguf(read_gguf_vocabulary(GgufFile::open(path)));
}

class TokenizerGoldens : public testing::TestWithParam<Source> {
 protected:
  void SetUp() override { tokenizer_ = load(GetParam()); }

  std::vector<nlohmann::json> rows(const std::string& suffix) const {
    return read_jsonl(tokenizer_data(GetParam().name + suffix));
  }

  void expect_ids(const nlohmann::json& row, const char* field, SpecialTokens specials) const {
    const auto expected = row.value(field, row.at("ids")).get<std::vector<TokenId>>();
    const auto found = tokenizer_->encode(row.at("text").get<std::string>(), specials);
    EXPECT_EQ(found, expected) << row.at("name") << " " << field << ": " << difference(found, expected);
  }

  void expect_text(const nlohmann::json& row) const {
    const auto ids = row.at("ids").get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer_->decode(ids, false), row.at("decoded").get<std::string>()) << row.at("name");
    const std::string skipped = tokenizer_->decode(ids, true);
    if (has_six_more_specials(ids)) {
      std::vector<TokenId> rest;
      std::copy_if(ids.begin(), ids.end(), std::back_inserter(rest),
                   [](TokenId id) { return id < 151643 || id == 151657 || id == 151658; });
      EXPECT_EQ(skipped, tokenizer_->decode(rest, false)) << row.at("name");
    } else {
      EXPECT_EQ(skipped, row.at("decoded_skip_special").get<std::string>()) << row.at("name");
    }
    if (!row.contains("pieces")) return;
    Detokenizer stream(tokenizer_, false);
    std::vector<std::string> pieces;
    for (const TokenId id : ids) pieces.push_back(stream.push(id));
    EXPECT_EQ(pieces, row.at("pieces").get<std::vector<std::string>>()) << row.at("name");
    EXPECT_EQ(stream.finish(), row.value("pieces_tail", "")) << row.at("name");
  }

  void expect_row(const nlohmann::json& row) const {
    expect_ids(row, "ids", SpecialTokens::all);
    expect_ids(row, "ids_no_special", SpecialTokens::non_special);
    expect_ids(row, "ids_plain", SpecialTokens::none);
    expect_text(row);
  }

  /// Qwen2.5's GGUF marks six tokens as control that the Hugging Face file does not mark.
  static bool has_six_more_specials(const std::vector<TokenId>& ids) {
    return GetParam().gguf_flags &&
           std::any_of(ids.begin(), ids.end(), [](TokenId id) { return id >= 151659 && id <= 151664; });
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

int passed_rows(int& failures_before) {
  const int now = testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  const bool clean = now == failures_before;
  failures_before = now;
  return clean ? 1 : 0;
}

TEST_P(TokenizerGoldens, TextsBothWays) {
  std::map<std::string, nlohmann::json> replaced;
  if (GetParam().gguf_flags) {
    for (auto& row : rows(".gguf_flags.jsonl")) replaced[row.at("name")] = row;
    ASSERT_EQ(replaced.size(), 2U);
  }
  const auto all = rows(".jsonl");
  ASSERT_EQ(all.size(), 563U);
  int parts = 0;
  int passed = 0;
  for (const auto& row : all) {
    const auto found = replaced.find(row.at("name"));
    expect_row(found == replaced.end() ? row : found->second);
    passed += passed_rows(parts);
  }
  std::printf("tokenizer goldens, %s: %d of %zu rows\n", GetParam().file, passed, all.size());
}

TEST_P(TokenizerGoldens, IdsThatNoTextGives) {
  const auto all = rows(".decode.jsonl");
  ASSERT_GE(all.size(), 60U);
  int parts = 0;
  int passed = 0;
  for (const auto& row : all) {
    expect_text(row);
    passed += passed_rows(parts);
  }
  std::printf("tokenizer decode goldens, %s: %d of %zu rows\n", GetParam().file, passed, all.size());
}

TEST_P(TokenizerGoldens, LongDocuments) {
  for (const std::string name : {"long_en", "long_zh", "long_code"}) {
    const auto golden =
        nlohmann::json::parse(test::read_file(tokenizer_data(name + "." + GetParam().name + ".ids.json")));
    const auto expected = golden.at("ids").get<std::vector<TokenId>>();
    ASSERT_EQ(expected.size(), golden.at("count").get<size_t>());
    const std::string text = test::read_file(tokenizer_data(name + ".txt"));
    for (int round = 0; round < 2; ++round) {  // the second one finds its pieces in the cache
      const auto found = tokenizer_->encode(text, SpecialTokens::all);
      EXPECT_EQ(found, expected) << name << ": " << difference(found, expected);
    }
    std::printf("tokenizer goldens, %s: %s, %zu ids\n", GetParam().file, name.c_str(), expected.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Published, TokenizerGoldens,
                         testing::Values(Source{"qwen3", "tokenizers/qwen3", false},
                                         Source{"qwen2.5", "tokenizers/qwen2.5", false},
                                         Source{"smollm2", "tokenizers/smollm2", false},
                                         Source{"qwen2.5", "models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                                                true},
                                         Source{"smollm2", "models/smollm2-135m-instruct-q4_1.gguf", false}));

TEST(TokenizerPublished, TheirSpecialTokensAreKnown) {
  const auto qwen3 = Tokenizer::from_folder(cached("tokenizers/qwen3"));
  EXPECT_EQ(qwen3->size(), 151669);
  EXPECT_EQ(qwen3->eos(), 151645);
  EXPECT_EQ(qwen3->pad(), 151643);
  EXPECT_FALSE(qwen3->bos());
  EXPECT_EQ(qwen3->stop_ids(), std::vector<TokenId>{151645});
  EXPECT_EQ(qwen3->find("<think>"), 151667);
  EXPECT_TRUE(qwen3->is_added(151667));
  EXPECT_FALSE(qwen3->is_special(151667));
  EXPECT_TRUE(qwen3->is_special(151645));
  EXPECT_EQ(qwen3->token_text(151645), "<|im_end|>");
  EXPECT_EQ(qwen3->add_special({1, 2}), (std::vector<TokenId>{1, 2}));

  const GgufFile file = GgufFile::open(cached("models/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"));
  const auto gguf = Tokenizer::from_gguf(read_gguf_vocabulary(file));
  EXPECT_EQ(gguf->size(), 151665) << "rows of type unused are padding, not tokens";
  EXPECT_FALSE(gguf->has(151665));
  EXPECT_EQ(gguf->eos(), 151645);
  EXPECT_EQ(gguf->bos(), 151643);
  EXPECT_EQ(gguf->add_special({1, 2}), (std::vector<TokenId>{1, 2}));
}

}  // namespace
}  // namespace qwench
