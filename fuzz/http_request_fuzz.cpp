// The first byte says how the rest, what a client sends, is cut. However it is, the request is the same, and
// no larger than the limits.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/request_parser.h"

namespace {

constexpr size_t kMostHeader = 2048;
constexpr size_t kMostBody = 1024;

/// What a connection makes of the bytes, as one text.
std::string read(std::string_view bytes, size_t step) {
  qwench::server::RequestParser parser(kMostHeader, kMostBody);
  std::string pending;
  bool head = false;
  size_t at = 0;
  while (at < bytes.size() && !parser.done()) {
    pending += bytes.substr(at, step);
    at += std::min(step, bytes.size() - at);
    qwench::server::RequestParser::Failure failure;
    size_t used = 1;
    while (used > 0 && !pending.empty() && !parser.done() && failure.status == 0) {
      used = parser.put(pending, failure);
      if (used > pending.size()) std::abort();
      pending.erase(0, used);
    }
    if (failure.status == 0 && !head && parser.has_head()) {
      head = true;
      failure = parser.check_head();
    }
    if (failure.status != 0) return "refused: " + std::to_string(failure.status);
  }
  if (!parser.has_head()) return "no head";
  qwench::server::HttpRequest request;
  parser.read_head(request);
  std::string text = request.method + " " + request.path + " " + request.query + "\n";
  size_t header_bytes = 0;
  for (const auto& [name, value] : request.headers) {
    text += name + ": " + value + "\n";
    header_bytes += name.size() + value.size();
  }
  if (header_bytes > kMostHeader) std::abort();
  if (!parser.done()) return text + "not whole";
  request.body = parser.take_body();
  if (request.body.size() > kMostBody) std::abort();
  text += parser.keep_alive() ? "kept\n" : "closed\n";
  return text + request.body + "\nrest: " + pending + std::string(bytes.substr(at));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 13;
  if (size == 0 || size > kLimit) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const std::string whole = read(bytes, bytes.size() + 1);
  const std::string cut = read(bytes, 1 + data[0] % 64);
  // What is wrong is seen at once, or when the rest of it would have come.
  const auto unread = [](const std::string& text) {
    return text.starts_with("refused") || text == "no head" || text.ends_with("not whole");
  };
  // Within a line's length of the limit the pieces decide whether a head is too long.
  const bool too_long = whole == "refused: 431" || cut == "refused: 431";
  if (whole != cut && !too_long && !(unread(whole) && unread(cut))) {
    std::fprintf(stderr, "whole:\n%s\ncut:\n%s\n", whole.c_str(), cut.c_str());
    std::abort();
  }
  return 0;
}
