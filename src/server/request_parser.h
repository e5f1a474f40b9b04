#pragma once

#include <memory>
#include <string_view>

#include "server/http_message.h"

namespace qwench::server {

/// One HTTP/1 request from its bytes, however they are cut. Framing that two parsers could read differently
/// (a length given twice, or beside chunks) is refused.
class RequestParser {
 public:
  struct Failure {
    int status = 0;  ///< 0: none
    std::string sentence;
  };

  RequestParser(size_t max_header_bytes, size_t max_body_bytes);
  ~RequestParser();

  /// Takes bytes and says how many were used; those that follow the request are left.
  size_t put(std::string_view bytes, Failure& failure);
  bool has_head() const;
  bool done() const;
  size_t body_size() const;

  // Once has_head().
  /// All but body, id and client. Trailers, behind the last chunk, are no part of it.
  void read_head(HttpRequest& request) const;
  Failure check_head() const;  ///< what is wrong with its framing
  bool keep_alive() const;
  bool expects_continue() const;
  int version() const;  ///< 10 or 11

  std::string take_body();  ///< once done()

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qwench::server
