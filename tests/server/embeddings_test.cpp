#include "server/embeddings.h"

#include <gmock/gmock.h>

#include "other_apis.h"

namespace qwench::server {
namespace {

using namespace test;

ServedModel embedding_model(std::optional<Pooling> pooling = Pooling::mean) { return {512, 4, pooling}; }

GenerationBody read_embeddings(const std::string& body, const ServedModel& served = embedding_model()) {
  return read_embeddings_body(Json::parse(body), served);
}

TEST(EmbeddingsBody, InputsOfEveryKind) {
  EXPECT_EQ(std::get<std::string>(read_embeddings(R"({"input": "a"})").prompts.at(0)), "a");
  EXPECT_EQ(read_embeddings(R"({"input": ["a", "b"]})").prompts.size(), 2U);
  EXPECT_EQ(std::get<std::vector<TokenId>>(read_embeddings(R"({"input": [1, 2]})").prompts.at(0)),
            (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(read_embeddings(R"({"input": [[1, 2], [3]]})").prompts.size(), 2U);
  EXPECT_EQ(read_embeddings(R"({"input": "a"})").settings.embedding, Pooling::mean);
  EXPECT_EQ(read_embeddings(R"({"input": "a", "pooling": "last"})").settings.embedding, Pooling::last);
  EXPECT_EQ(read_embeddings(R"({"input": "a"})", embedding_model(Pooling::last)).settings.embedding,
            Pooling::last);
}

TEST(EmbeddingsBody, ErrorsNameTheField) {
  EXPECT_EQ(error_of([] { read_embeddings(R"({})"); }).param(), "input");
  const std::pair<const char*, const char*> empty[] = {{R"({"input": ""})", "input"},
                                                       {R"({"input": []})", "input"},
                                                       {R"({"input": ["a", ""]})", "input[1]"},
                                                       {R"({"input": [[1], []]})", "input[1]"}};
  for (const auto& [body, param] : empty) {
    const ApiError error = error_of([text = body] { read_embeddings(text); });
    EXPECT_EQ(error.param(), param) << body;
    EXPECT_EQ(error.what(), std::string(param) + ": it is empty") << body;
  }
  EXPECT_EQ(error_of([] { read_embeddings(R"({"input": "a", "dimensions": 5})"); }).param(), "dimensions");
  EXPECT_EQ(error_of([] { read_embeddings(R"({"input": "a", "encoding_format": "int8"})"); }).param(),
            "encoding_format");
  EXPECT_EQ(error_of([] { read_embeddings(R"({"input": "a"})", embedding_model(std::nullopt)); }).param(),
            "pooling");
}

Json answer_to(const std::string& body) {
  const GenerationBody request = read_embeddings(body);
  std::vector<PromptChoices> prompts(2);
  prompts[1].first_choice = 1;
  const auto answer = request.make_answer(head(false), prompts);
  Result result;
  result.embedding = {3, 4, 0, 0};
  answer->take_result(prompts[0], 0, result);
  result.embedding = {0, 0, 0, 2};
  answer->take_result(prompts[1], 0, result);
  return answer->whole(totals());
}

TEST(EmbeddingsAnswer, VectorsHaveLengthOne) {
  const Json whole = answer_to(R"({"input": ["a", "b"]})");
  EXPECT_EQ(whole["object"], "list");
  EXPECT_EQ(whole["data"][0]["embedding"].get<std::vector<float>>(), (std::vector<float>{0.6F, 0.8F, 0, 0}));
  EXPECT_EQ(whole["data"][1]["embedding"].get<std::vector<float>>(), (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(whole["data"][1]["index"], 1);
  EXPECT_EQ(whole["usage"], Json::parse(R"({"prompt_tokens": 10, "total_tokens": 10})"));
  const Json cut = answer_to(R"({"input": ["a", "b"], "dimensions": 1})");
  EXPECT_EQ(cut["data"][0]["embedding"].get<std::vector<float>>(), (std::vector<float>{1}));
}

TEST(EmbeddingsAnswer, Base64IsOfLittleEndianFloats) {
  EXPECT_EQ(base64_of({}), "");
  EXPECT_EQ(base64_of({1.0F}), "AACAPw==");
  EXPECT_EQ(base64_of({1.0F, -2.0F}), "AACAPwAAAMA=");
  EXPECT_EQ(base64_of({1.0F, -2.0F, 0.5F}), "AACAPwAAAMAAAAA/");
  EXPECT_EQ(answer_to(R"({"input": ["a", "b"], "encoding_format": "base64"})")["data"][1]["embedding"],
            "AAAAAAAAAAAAAAAAAACAPw==");
}

}  // namespace
}  // namespace qwench::server
