#include "server/request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qwench::server {
namespace {

struct Parsed {
  int status = 0;  // of the refusal; 0: none
  bool done = false;
  HttpRequest request;
  std::string rest;
};

/// Parses `text` in pieces of `step` bytes.
Parsed parse(const std::string& text, size_t step, size_t max_header = 4096, size_t max_body = 100) {
  RequestParser parser(max_header, max_body);
  Parsed parsed;
  std::string pending;
  bool head = false;
  size_t at = 0;
  while (at < text.size() && !parser.done()) {
    pending += text.substr(at, step);
    at = std::min(text.size(), at + step);
    RequestParser::Failure failure;
    size_t used = 1;
    while (used > 0 && !pending.empty() && !parser.done() && failure.status == 0) {
      used = parser.put(pending, failure);
      pending.erase(0, used);
    }
    if (failure.status == 0 && !head && parser.has_head()) {
      head = true;
      failure = parser.check_head();
    }
    if (failure.status != 0) {
      parsed.status = failure.status;
      return parsed;
    }
  }
  parsed.done = parser.done();
  if (parser.has_head()) parser.read_head(parsed.request);
  if (parsed.done) parsed.request.body = parser.take_body();
  parsed.rest = pending + text.substr(at);
  return parsed;
}

TEST(RequestParser, GivesTheSameHoweverTheBytesAreCut) {
  const std::string texts[] = {"POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET",
                               "POST /a?b=c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                               "chunked\r\n\r\n2\r\nhe\r\n3;e=1\r\nllo\r\n0\r\n\r\nGET"};
  for (const std::string& text : texts) {
    for (const size_t step : {1, 2, 3, 7, 1000}) {
      const Parsed parsed = parse(text, step);
      ASSERT_TRUE(parsed.done) << step;
      EXPECT_EQ(parsed.request.method, "POST");
      EXPECT_EQ(parsed.request.path, "/a");
      EXPECT_EQ(parsed.request.query, "b=c");
      EXPECT_EQ(parsed.request.body, "hello");
      EXPECT_EQ(parsed.rest, "GET");
    }
  }
}

TEST(RequestParser, ALastChunkMayComeInPieces) {
  for (const std::string chunks : {"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n"}) {
    for (const size_t step : {1, 2, 3, 4, 5}) {
      const Parsed parsed =
          parse("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks, step);
      ASSERT_TRUE(parsed.done) << chunks << step;
      EXPECT_EQ(parsed.request.body, chunks.front() == '0' ? "" : "{}");
    }
  }
}

TEST(RequestParser, TrailersAreNoHeaders) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nHost: y\r\n"
      "Authorization: Bearer z\r\n\r\n";
  for (const size_t step : {1, 7, 1000}) {
    const Parsed parsed = parse(text, step);
    ASSERT_TRUE(parsed.done) << step << " " << parsed.status;
    EXPECT_EQ(parsed.request.headers.size(), 2U) << step;
    EXPECT_EQ(parsed.request.body, "{}");
  }
}

TEST(RequestParser, WhatIsTooLongOrAmbiguousIsRefused) {
  const std::string host = "Host: x\r\n";
  const struct {
    std::string text;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\n" + host + "\r\n", 505},
      {"GET / HTTP/1.1\r\n" + host + "X: " + std::string(5000, 'a') + "\r\n\r\n", 431},
      {"GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n" + host + "\r\n", 431},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 101\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400},
      {"POST / HTTP/1.1\r\n" + host + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'a') +
           "\r\n0\r\n\r\n",
       413},
      {"POST / HTTP/1.1\r\n" + host + "Expect: tea\r\nContent-Length: 1\r\n\r\n", 417},
      {"GET / HTTP/1.1\r\n" + host + "Bad Header: x\r\n\r\n", 400},
  };
  for (const auto& one : cases) {
    for (const size_t step : {1, 10000}) {
      EXPECT_EQ(parse(one.text, step).status, one.status)
          << one.text.substr(0, 120) << " in steps of " << step;
    }
  }
}

}  // namespace
}  // namespace qwench::server
