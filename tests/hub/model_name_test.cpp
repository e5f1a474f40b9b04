#include "hub/model_name.h"

#include <gtest/gtest.h>

namespace qwench::hub {
namespace {

TEST(ModelName, HasOrganizationNameChoiceAndRevision) {
  EXPECT_EQ(parse_model_name("Qwen/Qwen3-0.6B"), (ModelName{"Qwen", "Qwen3-0.6B", "", ""}));
  EXPECT_EQ(parse_model_name("Qwen/Qwen3-0.6B@refs/pr/1"),
            (ModelName{"Qwen", "Qwen3-0.6B", "", "refs/pr/1"}));
  EXPECT_EQ(parse_model_name("Qwen/X-GGUF:Q4_K_M"), (ModelName{"Qwen", "X-GGUF", "Q4_K_M", ""}));
  EXPECT_EQ(parse_model_name("Qwen/X-GGUF:BF16/x-bf16.gguf@v1"),
            (ModelName{"Qwen", "X-GGUF", "BF16/x-bf16.gguf", "v1"}));
}

TEST(ModelName, IsPrintedAsItIsTyped) {
  for (const char* text : {"Qwen/Qwen3-0.6B", "a_b/c.d@main", "Qwen/X:Q8_0", "Qwen/X:Q8_0@v1.0"})
    EXPECT_EQ(parse_model_name(text).value().text(), text);
}

TEST(ModelName, CannotLeaveTheCache) {
  for (const char* text : {"",         "/",        "a",    "a/",       "/b",          "a/b/c",       "../b",
                           "a/..",     "./b",      "a/.b", "a/b.",     "a--b/c",      "a/b--c",      "a/b..c",
                           "a b/c",    "a/b\n",    "a/b@", "a/b@..",   "a/b@main:Q4", "a/b@../../x", "a/b@/x",
                           "a/b@x//y", "a/b@x\\y", "a/b:", "a/b:../x", "a/b:x/",      "\xC3\xA4/b"})
    EXPECT_EQ(parse_model_name(text), std::nullopt) << text;
  EXPECT_EQ(parse_model_name(std::string(97, 'a') + "/b"), std::nullopt);
  EXPECT_EQ(parse_model_name(std::string("a/b\0c", 5)), std::nullopt);
}

TEST(SafePath, StaysBelowItsFolder) {
  for (const char* path :
       {"config.json", "a/b/c.gguf", "..a", "a..", "...", "\xE6\xA8\xA1\xE5\x9E\x8B.json", "a b"})
    EXPECT_TRUE(is_safe_path(path)) << path;
  for (const char* path :
       {"", ".", "..", "/a", "a/", "a//b", "a/./b", "a/../b", "../a", "a\\b", "a\tb", "\xFF", "\x7F"})
    EXPECT_FALSE(is_safe_path(path)) << path;
  EXPECT_FALSE(is_safe_path(std::string(256, 'a')));
  EXPECT_FALSE(is_safe_path(std::string(2, 'a') + std::string(1023, '/')));
}

TEST(SafeWord, IsOnePlainPart) {
  for (const char* word : {"a", "c1899de289a04d12100db370d81485cdf75e47ca", "v1.0", "_-"})
    EXPECT_TRUE(is_safe_word(word)) << word;
  for (const char* word : {"", ".", "..", ".a", "a/b", "a b", "\xC3\xA4"})
    EXPECT_FALSE(is_safe_word(word)) << word;
}

}  // namespace
}  // namespace qwench::hub
