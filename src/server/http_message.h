#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qwench::server {

/// Names are compared without regard to case; order and repetitions are kept.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first header called `name`; null when there is none.
const std::string* find_header(const Headers& headers, std::string_view name);
/// Without regard to the case of ASCII letters.
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// A request as the routes see it: its framing is undone and its limits are checked.
struct HttpRequest {
  std::string method;
  std::string path;   ///< of the target, before "?"; not decoded
  std::string query;  ///< of the target, behind "?"
  Headers headers;
  std::string body;
  std::string id;      ///< x-request-id as it came, or drawn
  std::string client;  ///< address and port
};

struct HttpResponse {
  int status = 200;
  Headers headers;  ///< framing (Content-Length, Connection, Date) is added when it is written
  std::string body;
};

/// "Not Found"; "" for a status that is not known.
std::string_view reason_phrase(int status);

}  // namespace qwench::server
