#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "qwench/error.h"
#include "server/api_access.h"
#include "server/request_id.h"

namespace qwench::server {
namespace {

TEST(ApiKeys, OnlyAKnownBearerOpens) {
  const ApiKeys keys({"first", "second"});
  EXPECT_TRUE(keys.allow({{"Authorization", "Bearer first"}}));
  EXPECT_TRUE(keys.allow({{"authorization", "bearer second"}}));
  EXPECT_FALSE(keys.allow({}));
  EXPECT_FALSE(keys.allow({{"Authorization", "Bearer "}}));
  EXPECT_FALSE(keys.allow({{"Authorization", "Bearer firs"}}));
  EXPECT_FALSE(keys.allow({{"Authorization", "Bearer first "}}));
  EXPECT_FALSE(keys.allow({{"Authorization", "Basic first"}}));
  EXPECT_FALSE(keys.allow({{"Authorization", "first"}}));
  EXPECT_TRUE(keys.allow({{"x-api-key", "first"}}));
  EXPECT_TRUE(keys.allow({{"X-Api-Key", "wrong"}, {"Authorization", "Bearer second"}}));
  EXPECT_FALSE(keys.allow({{"x-api-key", "Bearer first"}}));
  EXPECT_TRUE(ApiKeys({}).allow({}));
  EXPECT_THROW(ApiKeys({""}), Error);
}

TEST(ApiKeys, AFileHasOneOnEachLine) {
  const std::string path = testing::TempDir() + "keys.txt";
  std::ofstream(path) << "# of the team\nfirst\r\n\nsecond\n";
  EXPECT_EQ(read_key_file(path), (std::vector<std::string>{"first", "second"}));
  std::ofstream(path) << "# nothing\n";
  EXPECT_THROW(read_key_file(path), Error);
  EXPECT_THROW(read_key_file(path + ".missing"), Error);
  std::remove(path.c_str());
}

std::string allowed(const CorsPolicy& policy, const std::string& origin) {
  const Headers headers = policy.headers({{"Origin", origin}});
  const std::string* value = find_header(headers, "Access-Control-Allow-Origin");
  return value == nullptr ? "" : *value;
}

TEST(Cors, PagesOfThisMachineMayAskByDefault) {
  const CorsPolicy policy({});
  for (const char* origin :
       {"http://localhost", "http://localhost:3000", "https://127.0.0.1:8080", "http://[::1]:1"})
    EXPECT_EQ(allowed(policy, origin), origin);
  for (const char* origin :
       {"http://localhost.evil.com", "http://localhost:3000.evil.com", "https://example.org", "null",
        "http://127.0.0.1.evil.com", "http://localhost:", "file://localhost"})
    EXPECT_EQ(allowed(policy, origin), "") << origin;
}

TEST(Cors, NamedOriginsReplaceTheDefault) {
  const CorsPolicy policy({"https://example.org/"});
  EXPECT_EQ(allowed(policy, "https://example.org"), "https://example.org");
  EXPECT_EQ(allowed(policy, "http://localhost"), "");
  EXPECT_EQ(allowed(CorsPolicy({"*"}), "https://a.b"), "*");
  EXPECT_THROW(CorsPolicy({"example.org"}), Error);
}

TEST(Cors, PreflightEchoesOnlyHarmlessHeaderNames) {
  const auto allow = [](const std::string& wanted) {
    const Headers headers = CorsPolicy::preflight_headers({{"Access-Control-Request-Headers", wanted}});
    return *find_header(headers, "Access-Control-Allow-Headers");
  };
  EXPECT_EQ(allow("authorization, x-stainless-os"), "authorization, x-stainless-os");
  EXPECT_THAT(allow("a\r\nSet-Cookie: x"), testing::Not(testing::HasSubstr("Cookie")));
}

TEST(RequestId, IsDrawnAnewAndAClientsIsChecked) {
  EXPECT_NE(new_request_id(), new_request_id());
  EXPECT_TRUE(is_request_id(new_request_id()));
  EXPECT_TRUE(is_request_id("a-B_9.c:d"));
  for (const std::string& bad :
       {std::string(), std::string("a b"), std::string("a\nb"), std::string(129, 'a')})
    EXPECT_FALSE(is_request_id(bad));
}

}  // namespace
}  // namespace qwench::server
