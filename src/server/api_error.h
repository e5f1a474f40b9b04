#pragma once

#include <stdexcept>
#include <string>

#include "core/json.h"
#include "qwench/error.h"
#include "server/http_message.h"

namespace qwench::server {

/// How an API writes its errors.
enum class ErrorShape {
  openai,     ///< {"error": {"message", "type", "param", "code"}}
  anthropic,  ///< {"type": "error", "error": {"type", "message"}}
  ollama,     ///< {"error": "sentence"}
};

/// What an API route answers instead of a result.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  int status() const noexcept { return status_; }
  const std::string& param() const noexcept { return param_; }  ///< the field; empty: null
  const std::string& code() const noexcept { return code_; }    ///< empty: null

  Json to_json(ErrorShape shape = ErrorShape::openai) const;
  HttpResponse to_response(
      ErrorShape shape = ErrorShape::openai) const;  ///< with Retry-After where it may help to come again

 private:
  int status_;
  std::string param_;
  std::string code_;
};

/// An error of the engine as a client should see it: its kind decides the status.
ApiError to_api_error(const Error& error, const std::string& param = "");

HttpResponse json_response(int status, const Json& body);
/// One line of JSON; ill-formed UTF-8 becomes U+FFFD.
std::string to_line(const Json& value);

}  // namespace qwench::server
