#include "hub/environment.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "qwench/error.h"

namespace qwench::hub {
namespace {

Environment with(std::map<std::string, std::string> variables) {
  variables.emplace("HOME", "/home/me");
  return read_environment([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
}

TEST(Environment, HasTheDefaultsOfHuggingfaceHub) {
  const Environment environment = with({});
  EXPECT_EQ(environment.endpoint, "https://huggingface.co");
  EXPECT_EQ(environment.modelscope_endpoint, "https://modelscope.cn");
  EXPECT_EQ(environment.cache, "/home/me/.cache/huggingface/hub");
  EXPECT_EQ(environment.token_path, "/home/me/.cache/huggingface/token");
  EXPECT_FALSE(environment.offline);
}

TEST(Environment, TheMostSpecificCacheVariableCounts) {
  EXPECT_EQ(with({{"XDG_CACHE_HOME", "/x"}}).cache, "/x/huggingface/hub");
  EXPECT_EQ(with({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "~/hf"}}).cache, "/home/me/hf/hub");
  EXPECT_EQ(with({{"HF_HOME", "/hf"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}).cache, "/old");
  EXPECT_EQ(with({{"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HUB_CACHE", "/new"}}).cache, "/new");
  EXPECT_EQ(with({{"HF_HOME", "/hf"}}).token_path, "/hf/token");
}

TEST(Environment, TruthIsWrittenInFourWays) {
  for (const char* text : {"1", "ON", "yes", "True"})
    EXPECT_TRUE(with({{"HF_HUB_OFFLINE", text}}).offline) << text;
  for (const char* text : {"", "0", "off", "no"})
    EXPECT_FALSE(with({{"HF_HUB_OFFLINE", text}}).offline) << text;
}

TEST(Environment, AnEndpointIsAnHttpAddress) {
  EXPECT_EQ(with({{"HF_ENDPOINT", "https://mirror.example/"}}).endpoint, "https://mirror.example");
  for (const char* text : {"mirror.example", "file:///etc", "ftp://mirror.example"})
    EXPECT_THROW(with({{"HF_ENDPOINT", text}}), Error) << text;
}

TEST(Environment, TheTokenIsTrimmedAndOneWord) {
  EXPECT_EQ(with({{"HF_TOKEN", " hf_a\n"}}).token(), "hf_a");
  EXPECT_EQ(with({{"HF_TOKEN", "hf_a"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}).token(), std::nullopt);
  EXPECT_THROW(with({{"HF_TOKEN", "a\r\nHost: b"}}).token(), Error);
  EXPECT_EQ(with({{"HF_TOKEN_PATH", "/nowhere/token"}}).token(), std::nullopt);
}

}  // namespace
}  // namespace qwench::hub
