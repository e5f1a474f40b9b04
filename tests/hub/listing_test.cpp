#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/digest.h"
#include "hub/remote.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

const std::string kSha256(64, 'a');
const std::string kSha1(40, 'b');

Response answer(int status, std::map<std::string, std::string> headers) {
  Response response;
  response.status = status;
  response.headers = std::move(headers);
  return response;
}

TEST(Listing, OfHuggingFaceHasCommitFilesSizesAndChecksums) {
  const Listing listing = parse_hugging_face_listing(
      R"({"sha": "c0ffee", "siblings": [{"rfilename": "b.json"}, {"rfilename": "a.gguf", "size": 7, "lfs": {"sha256": ")" +
          kSha256 + R"("}}], "gated": false})",
      "x");
  EXPECT_EQ(listing.commit, "c0ffee");
  EXPECT_THAT(listing.files, ::testing::ElementsAre(RemoteFile{"a.gguf", 7, kSha256},
                                                    RemoteFile{"b.json", std::nullopt, ""}));
}

TEST(Listing, OfModelScopeIsNamedByItsContent) {
  const auto parse = [](const std::string& sha) {
    return parse_modelscope_listing(R"({"Code": 200, "Data": {"Files": [{"Path": "d", "Type": "tree"},
      {"Path": "d/a.json", "Type": "blob", "Size": 3, "Sha256": ")" +
                                        sha + R"("}]}})",
                                    "x");
  };
  const Listing listing = parse(kSha256);
  EXPECT_THAT(listing.files, ::testing::ElementsAre(RemoteFile{"d/a.json", 3, kSha256}));
  EXPECT_EQ(listing.commit.size(), 40u);
  EXPECT_EQ(listing.commit, parse(kSha256).commit);
  EXPECT_NE(listing.commit, parse(std::string(64, 'c')).commit);
}

TEST(Blob, IsNamedByTheLinkedEtagAndElseByTheEtag) {
  const Blob large = blob_from_headers(answer(302, {{"x-linked-etag", '"' + kSha256 + '"'},
                                                    {"x-linked-size", "9"},
                                                    {"etag", "\"other\""},
                                                    {"content-length", "5"}}),
                                       {"a", std::nullopt, ""}, "a");
  EXPECT_EQ(large.etag, kSha256);
  EXPECT_EQ(large.sha256, kSha256);
  EXPECT_EQ(large.size, 9u);
  const Blob small = blob_from_headers(answer(200, {{"etag", "W/\"" + kSha1 + '"'}, {"content-length", "5"}}),
                                       {"a", 5, ""}, "a");
  EXPECT_EQ(small.etag, kSha1);
  EXPECT_EQ(small.git_sha1, kSha1);
  EXPECT_EQ(small.size, 5u);
}

TEST(Blob, WhatTheServerSaysMustFitTogether) {
  const RemoteFile file{"a", 5, kSha256};
  for (const auto& headers : std::vector<std::map<std::string, std::string>>{
           {{"etag", "../x"}, {"content-length", "5"}},
           {{"etag", kSha256}, {"content-length", "6"}},
           {{"etag", std::string(64, 'c')}, {"content-length", "5"}}})
    EXPECT_THROW(blob_from_headers(answer(200, headers), file, "a"), Error);
  EXPECT_THROW(blob_from_headers(answer(302, {{"etag", kSha1}, {"content-length", "5"}}),
                                 {"a", std::nullopt, ""}, "a"),
               Error);
}

TEST(Digest, AgreesWithKnownValues) {
  Digest sha = Digest::sha256();
  sha.update("ab");
  sha.update("c");
  EXPECT_EQ(sha.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Digest git = Digest::git_sha1(0);
  EXPECT_EQ(git.finish(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");  // git hash-object /dev/null
}

TEST(Http, RetryAfterIsSecondsOrADate) {
  EXPECT_EQ(answer(429, {{"retry-after", "7"}}).retry_after(), 7.0);
  EXPECT_EQ(answer(429, {{"retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"}}).retry_after(), 0.0);
  EXPECT_GT(answer(429, {{"retry-after", "99999999999999999999999"}}).retry_after(), 1e6);
  EXPECT_EQ(answer(429, {{"retry-after", "soon"}}).retry_after(), std::nullopt);
  EXPECT_EQ(answer(429, {}).retry_after(), std::nullopt);
}

TEST(Http, AnOriginIsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://HuggingFace.co/a/b"), "https://huggingface.co:443");
  EXPECT_EQ(origin_of("http://localhost:80/"), origin_of("http://localhost/x?y"));
  EXPECT_NE(origin_of("https://huggingface.co"), origin_of("https://huggingface.co.evil.com"));
  EXPECT_NE(origin_of("https://huggingface.co@evil.com/"), origin_of("https://huggingface.co"));
  EXPECT_EQ(origin_of("file:///etc/passwd"), "");
}

TEST(Http, PercentEncodingLeavesNoSpecialCharacters) {
  EXPECT_EQ(percent_encoded("refs/pr/1", false), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("a b/c?d#e%\xC3\xA4", true), "a%20b/c%3Fd%23e%25%C3%A4");
}

}  // namespace
}  // namespace qwench::hub
