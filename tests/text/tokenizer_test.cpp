#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "checkpoint/gguf.h"
#include "qwench/error.h"
#include "sanitized.h"
#include "text/detokenizer.h"
#include "text/gguf_tokenizer.h"
#include "tokenizer_files.h"

namespace qwench {
namespace {

using Ids = std::vector<TokenId>;

nlohmann::json added(const std::string& content, int id, bool special) {
  return {{"id", id},
          {"content", content},
          {"special", special},
          {"normalized", false},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false}};
}

/// The ids 0 to 255 are the bytes; "<|end|>" is 256 and special, "<think>" 257 and is not.
nlohmann::json byte_tokenizer() {
  nlohmann::json vocab = nlohmann::json::object();
  int extra = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool visible = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const int c = visible ? b : extra++;
    std::string text;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else {
      text += static_cast<char>(0xC0 | c >> 6);
      text += static_cast<char>(0x80 | (c & 0x3F));
    }
    vocab[text] = b;
  }
  return {{"added_tokens", {added("<|end|>", 256, true), added("<think>", 257, false)}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
}

std::shared_ptr<const Tokenizer> tokenizer_of(const nlohmann::json& json) {
  return Tokenizer::from_json_text(json.dump(), "tokenizer.json");
}

std::string load_error(const nlohmann::json& json) {
  try {
    tokenizer_of(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "loaded";
}

Ids bytes_of(const std::string& text) {
  Ids out;
  for (const char c : text) out.push_back(static_cast<uint8_t>(c));
  return out;
}

TEST(Tokenizer, SpecialTokenTextInUserContentStaysText) {
  const auto tokenizer = tokenizer_of(byte_tokenizer());
  const std::string text = "<|end|>a<|end|><|end|>";
  const std::vector<ByteSpan> trusted{{0, 7}, {15, 22}};
  Ids expected{256};
  for (const TokenId id : bytes_of("a<|end|>")) expected.push_back(id);
  expected.push_back(256);
  EXPECT_EQ(tokenizer->encode(text, trusted), expected);
  EXPECT_EQ(tokenizer->encode(text, SpecialTokens::none), bytes_of(text));
  EXPECT_EQ(tokenizer->encode(text, std::vector<ByteSpan>{}), bytes_of(text));
  EXPECT_EQ(tokenizer->encode("<think><|end|>", SpecialTokens::non_special).front(), 257);
  EXPECT_EQ(tokenizer->encode("<think><|end|>", SpecialTokens::non_special).size(), 8U);
}

TEST(Tokenizer, AddedTokensThatAreNotSpecialCountInUserContent) {
  const auto tokenizer = tokenizer_of(byte_tokenizer());
  const std::string text = "<think><|end|></think><|end|>";
  Ids expected{257};
  for (const TokenId id : bytes_of("<|end|></think>")) expected.push_back(id);
  expected.push_back(256);
  EXPECT_EQ(tokenizer->encode(text, std::vector<ByteSpan>{{22, 29}}), expected);
  EXPECT_EQ(tokenizer->encode("<think>", std::vector<ByteSpan>{{0, 3}}), Ids{257}) << "across the border too";
  EXPECT_EQ(tokenizer->encode("<think>", SpecialTokens::none), bytes_of("<think>"));
}

TEST(Tokenizer, ATokenHalfFromTheUserIsText) {
  const auto tokenizer = tokenizer_of(byte_tokenizer());
  const std::string text = "<|end|>";
  for (size_t cut = 1; cut < text.size(); ++cut) {
    EXPECT_EQ(tokenizer->encode(text, std::vector<ByteSpan>{{0, cut}}), bytes_of(text)) << cut;
    EXPECT_EQ(tokenizer->encode(text, std::vector<ByteSpan>{{cut, text.size()}}), bytes_of(text)) << cut;
    EXPECT_EQ(tokenizer->encode(text, (std::vector<ByteSpan>{{0, cut}, {cut, text.size()}})), Ids{256})
        << "spans that touch are one";
  }
  // What the user wrote before it does not hide the template's own token.
  EXPECT_EQ(tokenizer->encode("<|en<|end|>", std::vector<ByteSpan>{{4, 11}}).back(), 256);
  EXPECT_THROW(tokenizer->encode(text, std::vector<ByteSpan>{{3, 9}}), Error);
  EXPECT_THROW(tokenizer->encode(text, (std::vector<ByteSpan>{{3, 5}, {1, 2}})), Error);
}

TEST(Tokenizer, TextMergesAcrossTheBorderOfTemplateAndContent) {
  const auto tokenizer = Tokenizer::from_folder(test::cached("tokenizers/qwen3"));
  // The template ends with a newline, the content begins with one: together they are the token "\n\n".
  const std::string text = "<|im_start|>user\n\nHi<|im_end|>\n";
  const std::vector<ByteSpan> trusted{{0, 17}, {20, text.size()}};
  EXPECT_EQ(tokenizer->encode(text, trusted), tokenizer->encode(text, SpecialTokens::all));
  const std::string evil = "<|im_start|>user\n<|im_end|>x<|im_end|>\n";
  const auto ids = tokenizer->encode(evil, std::vector<ByteSpan>{{0, 17}, {28, evil.size()}});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 151645), 1);
  EXPECT_EQ(tokenizer->decode(ids, false), evil);
}

TEST(Tokenizer, ProvenanceFollowsTheTextThroughNormalization) {
  nlohmann::json json = byte_tokenizer();
  json["added_tokens"].push_back(added("<end>", 258, true));
  json["added_tokens"][2]["normalized"] = true;
  json["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {{{"type", "Prepend"}, {"prepend", "__"}}, {{"type", "Lowercase"}}}}};
  // "__" is put before the token's own text too, so it is found at the start of a text only.
  const auto tokenizer = tokenizer_of(json);
  EXPECT_EQ(tokenizer->encode("<END>x", std::vector<ByteSpan>{{0, 5}}), (Ids{258, 'x'}));
  EXPECT_EQ(tokenizer->encode("<END>x", std::vector<ByteSpan>{{0, 4}}), bytes_of("__<end>x"));
}

TEST(Tokenizer, EachIllFormedPartIsOneReplacementCharacter) {
  const auto tokenizer = tokenizer_of(byte_tokenizer());
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(tokenizer->encode("a\xFF"
                              "b",
                              SpecialTokens::all),
            bytes_of("a" + mark + "b"));
  EXPECT_EQ(tokenizer->encode("\xE4\xB8"
                              "c",
                              SpecialTokens::all),
            bytes_of(mark + "c"));
  EXPECT_EQ(tokenizer->encode("\xED\xA0\x80", SpecialTokens::all), bytes_of(mark + mark + mark));
  // Trusted spans move along with the repaired text.
  const std::string text = "\xFF<|end|>\xE4\xB8<|end|>";
  Ids expected = bytes_of(mark);
  expected.push_back(256);
  for (const TokenId id : bytes_of(mark + "<|end|>")) expected.push_back(id);
  EXPECT_EQ(tokenizer->encode(text, std::vector<ByteSpan>{{0, 8}}), expected);
}

TEST(Tokenizer, IdsBeyondTheVocabularyDecodeToNothing) {
  const auto tokenizer = tokenizer_of(byte_tokenizer());
  EXPECT_EQ(tokenizer->size(), 258);
  EXPECT_EQ(tokenizer->decode(Ids{'a', 258, -1, 2147483647, 'b'}, false), "ab");
  EXPECT_FALSE(tokenizer->has(258));
  EXPECT_FALSE(tokenizer->has(-1));
  EXPECT_EQ(tokenizer->token_text(-1), "");
  EXPECT_EQ(tokenizer->find("no such token"), std::nullopt);
}

TEST(Tokenizer, AnUnknownTypeIsAnErrorThatNamesItAndWhatIsSupported) {
  const auto with = [](const char* field, const nlohmann::json& value) {
    nlohmann::json json = byte_tokenizer();
    json[field] = value;
    return load_error(json);
  };
  for (const char* field : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    const std::string error = with(field, {{"type", "Frobnicate"}});
    EXPECT_NE(error.find("\"Frobnicate\""), std::string::npos) << error;
    EXPECT_NE(error.find("Sequence"), std::string::npos) << error;
    EXPECT_NE(error.find(field), std::string::npos) << error;
    EXPECT_NE(with(field, 3).find(field), std::string::npos);
    EXPECT_NE(with(field, nlohmann::json::object()).find("\"type\" is missing"), std::string::npos);
  }
  nlohmann::json json = byte_tokenizer();
  json["model"]["type"] = "Unigram";
  EXPECT_NE(load_error(json).find("\"Unigram\""), std::string::npos);
  json["model"]["type"] = "BPE";
  json["model"]["dropout"] = 0.1;
  EXPECT_NE(load_error(json).find("dropout"), std::string::npos);
  json["model"]["dropout"] = nullptr;
  json = byte_tokenizer();
  json["something_new"] = 1;
  EXPECT_NE(load_error(json).find("something_new"), std::string::npos);
  json = byte_tokenizer();
  json["added_tokens"].push_back(added("<x>", 256, true));
  EXPECT_NE(load_error(json).find("256"), std::string::npos);
}

TEST(Tokenizer, ProcessorsThatAddAroundEachOtherAreRefused) {
  nlohmann::json json = byte_tokenizer();
  const nlohmann::json bert = {{"type", "BertProcessing"}, {"sep", {"a", 97}}, {"cls", {"b", 98}}};
  const nlohmann::json bytes = {{"type", "ByteLevel"}};
  json["post_processor"] = {{"type", "Sequence"}, {"processors", {bytes, bert}}};
  EXPECT_EQ(tokenizer_of(json)->add_special({1}), (Ids{98, 1, 97}));
  json["post_processor"]["processors"].push_back(bert);
  EXPECT_NE(load_error(json).find("more than one processor"), std::string::npos) << load_error(json);
}

TEST(Tokenizer, AnUnknownTokenThatIsNoTokenMattersWhereItIsNeeded) {
  nlohmann::json json = byte_tokenizer();
  json["model"]["unk_token"] = "<unk>";
  EXPECT_EQ(tokenizer_of(json)->encode("ab", SpecialTokens::all), bytes_of("ab"));
  json["pre_tokenizer"] = nullptr;
  json["model"]["vocab"] = {{"a", 0}, {"b", 1}};
  const auto letters = tokenizer_of(json);
  EXPECT_EQ(letters->encode("ab", SpecialTokens::all), (Ids{0, 1}));
  try {
    letters->encode("abc", SpecialTokens::all);
    FAIL() << "encoded";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("<unk>"), std::string::npos) << error.what();
  }
}

TEST(Tokenizer, AWholePieceThatIsASpecialTokenOfTheVocabularyStaysTextUnlessTrusted) {
  nlohmann::json json = byte_tokenizer();
  json["pre_tokenizer"]["use_regex"] = false;
  json["model"]["vocab"]["<|end|>"] = 256;
  json["model"]["ignore_merges"] = true;
  const auto tokenizer = tokenizer_of(json);
  EXPECT_EQ(tokenizer->encode("<|end|>", SpecialTokens::all), (Ids{256}));
  EXPECT_EQ(tokenizer->encode("<|end|>", SpecialTokens::none), bytes_of("<|end|>"));
  EXPECT_EQ(tokenizer->encode("<|end|>", SpecialTokens::non_special), bytes_of("<|end|>"));
  EXPECT_EQ(tokenizer->encode("<|end|>", std::span<const ByteSpan>()), bytes_of("<|end|>"));
  EXPECT_EQ(tokenizer->encode("<|end|>", SpecialTokens::all), (Ids{256}));
}

TEST(Tokenizer, MalformedFilesAreRefusedInOneSentence) {
  const std::filesystem::path root = std::filesystem::path(QWENCH_TEST_DATA) / "malformed";
  const auto expectations = nlohmann::json::parse(test::read_file(root / "expectations.json"));
  int cases = 0;
  for (const auto& one : expectations) {
    if (one.at("kind") != "tokenizer") continue;
    ++cases;
    const std::string file = one.at("file");
    const auto start = std::chrono::steady_clock::now();
    std::string error;
    try {
      Tokenizer::from_folder((root / file).parent_path());
    } catch (const Error& e) {
      error = e.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << file;
    if (one.at("expect") == "ok") {
      EXPECT_EQ(error, "") << file;
    }
    if (one.at("expect") == "error") {
      EXPECT_NE(error.find("tokenizer.json"), std::string::npos) << file << ": " << error;
    }
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_EQ(cases, 19);
  std::printf("malformed tokenizers: %d cases\n", cases);
}

constexpr size_t kLongText = test::kSanitized ? 1 << 16 : 1 << 20;

TEST(Tokenizer, TimeIsProportionalToLength) {
  const auto tokenizer = Tokenizer::from_folder(test::cached("tokenizers/qwen3"));
  nlohmann::json whole = byte_tokenizer();  // without a pre-tokenizer all of it is one piece
  whole["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  whole["model"]["vocab"]["aa"] = 300;
  whole["model"]["vocab"]["aaaa"] = 301;
  whole["model"]["merges"] = {"a a", "aa aa"};
  const auto one_piece = tokenizer_of(whole);
  std::string random;
  uint32_t state = 1;
  for (size_t i = 0; i < kLongText; ++i)
    random.push_back(static_cast<char>((state = state * 1664525 + 1013904223) >> 24));
  const auto repeated = [](std::string_view part) {
    std::string out;
    while (out.size() < kLongText) out += part;
    return out;
  };
  const std::pair<const char*, std::string> texts[] = {{"one character", repeated("a")},
                                                       {"spaces", repeated(" ")},
                                                       {"line ends", repeated("\n")},
                                                       {"blank lines", repeated(" \n")},
                                                       {"random bytes", random},
                                                       {"emoji", repeated("\xF0\x9F\x98\x80")},
                                                       {"Chinese", repeated("\xE4\xBD\xA0")},
                                                       {"digits", repeated("7")},
                                                       {"marks", "a" + repeated("\xCC\x81\xCC\xA3")},
                                                       {"beginnings of tokens", repeated("<|im_sta")},
                                                       {"apostrophes", repeated("'")},
                                                       {"tokens", repeated("<|im_end|>")}};
  for (const auto& [name, text] : texts) {
    for (const auto& t : {tokenizer, one_piece}) {
      const auto start = std::chrono::steady_clock::now();
      const auto ids = t->encode(text, SpecialTokens::all);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      EXPECT_LT(seconds, 30) << name;  // a quadratic case takes hours
      std::printf("%zu KB of %s: %zu ids in %.0f ms\n", text.size() >> 10, name, ids.size(), seconds * 1000);
      if (t == tokenizer && name != std::string("random bytes") && name != std::string("marks")) {
        EXPECT_EQ(t->decode(ids, false), text) << name;
      }
    }
  }
}

TEST(Tokenizer, SpacesThatEndNoLineAreNotTriedOneByOne) {
  nlohmann::json json = byte_tokenizer();
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", R"(\s+$)"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  const std::string text = std::string(1 << 20, ' ') + "x";
  EXPECT_EQ(tokenizer_of(json)->encode(text, SpecialTokens::all), bytes_of(text));
}

TEST(Tokenizer, OneTokenizerServesManyThreads) {
  const auto tokenizer = Tokenizer::from_folder(test::cached("tokenizers/smollm2"));
  const std::string text = test::read_file(test::tokenizer_data("long_code.txt"));
  const auto expected = tokenizer->encode(text, SpecialTokens::all);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  for (size_t i = 0; i < equal.size(); ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round)
        equal[i] += tokenizer->encode(text, SpecialTokens::all) == expected;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 3));
}

TEST(TokenizerConfig, FillsInWhatTokenizerJsonLacks) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "qwench_tokenizer_config";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const nlohmann::json& json) {
    std::ofstream(folder / name) << json.dump();
  };
  write("tokenizer.json", byte_tokenizer());
  write("tokenizer_config.json", {{"bos_token", "<think>"},
                                  {"eos_token", {{"content", "<|end|>"}, {"special", true}}},
                                  {"pad_token", nullptr},
                                  {"add_bos_token", true},
                                  {"added_tokens_decoder",
                                   {{"258", {{"content", "<more>"}, {"special", true}}},
                                    {"256", {{"content", "<|end|>"}, {"special", false}}}}}});
  const auto tokenizer = Tokenizer::from_folder(folder);
  EXPECT_EQ(tokenizer->bos(), 257);
  EXPECT_EQ(tokenizer->eos(), 256);
  EXPECT_EQ(tokenizer->pad(), std::nullopt);
  EXPECT_EQ(tokenizer->stop_ids(), Ids{256});
  EXPECT_EQ(tokenizer->encode("<more>", SpecialTokens::all), Ids{258});
  EXPECT_TRUE(tokenizer->is_special(256)) << "tokenizer.json has said so";
  EXPECT_EQ(tokenizer->add_special({'a'}), (Ids{257, 'a'}));
  std::filesystem::remove_all(folder);
  EXPECT_THROW(Tokenizer::from_folder(folder), Error);
}

TEST(Detokenizer, HoldsBackWhatFurtherTokensCanChange) {
  const auto tokenizer = tokenizer_of(byte_tokenizer());
  Detokenizer stream(tokenizer, true);
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push(0xB8), "");
  EXPECT_EQ(stream.push(0xAD), "\xE4\xB8\xAD");
  EXPECT_EQ(stream.push(256), "") << "special, skipped";
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push('A'),
            "\xEF\xBF\xBD"
            "A");
  EXPECT_EQ(stream.push(0xC3), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

GgufVocabulary sentencepiece_vocabulary() {
  GgufVocabulary v;
  v.what = "test.gguf";
  v.model = "llama";
  v.tokens = {"<unk>",
              "<s>",
              "</s>",
              "\xE2\x96\x81",
              "a",
              "b",
              "ab",
              "\xE2\x96\x81"
              "ab",
              "<0xC3>",
              "<0xA9>",
              "ba"};
  v.scores = {0, 0, 0, -4, -5, -6, -2, -3, 0, 0, -1};
  v.token_types = {GgufTokenType::unknown, GgufTokenType::control, GgufTokenType::control,
                   GgufTokenType::normal,  GgufTokenType::normal,  GgufTokenType::normal,
                   GgufTokenType::normal,  GgufTokenType::normal,  GgufTokenType::byte,
                   GgufTokenType::byte,    GgufTokenType::normal};
  v.bos = 1;
  v.eos = 2;
  v.unknown = 0;
  return v;
}

TEST(GgufTokenizer, SentencePieceMergesByScore) {
  const auto tokenizer = Tokenizer::from_gguf(sentencepiece_vocabulary());
  EXPECT_EQ(tokenizer->encode("ab", SpecialTokens::all), (Ids{7}));
  EXPECT_EQ(tokenizer->encode("aba", SpecialTokens::all), (Ids{3, 4, 10})) << "\"ba\" has the higher score";
  EXPECT_EQ(tokenizer->encode("\xC3\xA9z", SpecialTokens::all), (Ids{3, 8, 9, 0}));
  EXPECT_EQ(tokenizer->decode(Ids{7, 8, 9, 3, 4}, false), "ab\xC3\xA9 a");
  EXPECT_EQ(tokenizer->add_special({7}), (Ids{1, 7}));
  Detokenizer stream(tokenizer, false);
  EXPECT_EQ(stream.push(7), "ab") << "without the space before the text";
  EXPECT_EQ(stream.push(8), "");
  EXPECT_EQ(stream.push(9), "");
  EXPECT_EQ(stream.push(4),
            "\xC3\xA9"
            "a");
  EXPECT_EQ(stream.finish(), "");
}

TEST(GgufTokenizer, UnknownKindsAndBrokenFieldsAreNamed) {
  const auto error_of = [](const GgufVocabulary& v) -> std::string {
    try {
      Tokenizer::from_gguf(v);
    } catch (const Error& error) {
      return error.what();
    }
    return "loaded";
  };
  GgufVocabulary v = sentencepiece_vocabulary();
  v.model = "t5";
  EXPECT_NE(error_of(v).find("\"t5\""), std::string::npos);
  v.model = "gpt2";
  EXPECT_NE(error_of(v).find("tokenizer.ggml.pre is missing"), std::string::npos) << "never a default";
  v.pre = "martian";
  EXPECT_NE(error_of(v).find("\"martian\""), std::string::npos);
  EXPECT_NE(error_of(v).find("qwen2"), std::string::npos);
  v.pre = "qwen2";
  v.merges = {"a"};
  EXPECT_NE(error_of(v).find("merges[0]"), std::string::npos);
  v.merges = {"a z"};
  EXPECT_NE(error_of(v).find("\"z\""), std::string::npos);
  v.merges = {"a b"};
  v.token_types.pop_back();
  EXPECT_NE(error_of(v).find("token_type"), std::string::npos);
  v = sentencepiece_vocabulary();
  v.scores.pop_back();
  EXPECT_NE(error_of(v).find("scores"), std::string::npos);
}

TEST(GgufTokenizer, EveryPreTokenizerLoads) {
  GgufVocabulary v = sentencepiece_vocabulary();
  v.model = "gpt2";
  v.scores.clear();
  for (const char* pre : {"qwen2", "deepseek-r1-qwen", "qwen35", "gpt-2", "phi-2", "mpt", "olmo", "smollm",
                          "starcoder", "refact", "command-r", "llama-bpe", "llama3", "llama-v3", "gpt-4o",
                          "llama4", "deepseek-llm", "deepseek-coder", "deepseek-v3"}) {
    v.pre = pre;
    const auto tokenizer = Tokenizer::from_gguf(v);
    // Llama 3 takes a piece that is a token whole.
    const bool llama3 = std::string_view(pre).starts_with("llama") && pre != std::string("llama4");
    EXPECT_EQ(tokenizer->encode("ab ba", SpecialTokens::all), llama3 ? (Ids{6, 5, 4}) : (Ids{4, 5, 5, 4}))
        << pre;
    EXPECT_EQ(tokenizer->add_special({4}).size(), llama3 ? 2U : 1U) << pre;
  }
}

}  // namespace
}  // namespace qwench
