#include "server/api_error.h"

#include "core/large_integers.h"

namespace qwench::server {
namespace {

constexpr const char* kRetryAfterSeconds = "1";

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 408:
    case 504:
      return "timeout_error";
    case 503:
      return "service_unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

/// https://docs.anthropic.com/en/api/errors
const char* anthropic_type_of(int status) {
  switch (status) {
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    case 500:
      return "api_error";
    default:
      return type_of(status);
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

std::string to_line(const Json& value) { return json_line(value); }

HttpResponse json_response(int status, const Json& body) {
  return {status, {{"Content-Type", "application/json"}}, to_line(body)};
}

Json ApiError::to_json(ErrorShape shape) const {
  if (shape == ErrorShape::ollama) return Json{{"error", what()}};
  if (shape == ErrorShape::anthropic) {
    return Json{{"type", "error"}, {"error", {{"type", anthropic_type_of(status_)}, {"message", what()}}}};
  }
  return Json{{"error",
               {{"message", what()},
                {"type", type_of(status_)},
                {"param", text_or_null(param_)},
                {"code", text_or_null(code_)}}}};
}

HttpResponse ApiError::to_response(ErrorShape shape) const {
  HttpResponse response = json_response(status_, to_json(shape));
  if (status_ == 429 || status_ == 503) response.headers.emplace_back("Retry-After", kRetryAfterSeconds);
  if (status_ == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

ApiError to_api_error(const Error& error, const std::string& param) {
  switch (error.kind()) {
    case ErrorKind::invalid_argument:
    case ErrorKind::malformed:
    case ErrorKind::unsupported:
    case ErrorKind::template_error:
    case ErrorKind::not_found:
      return {400, error.what(), param};
    case ErrorKind::busy:
      return {429, error.what(), "", "queue_full"};
    case ErrorKind::shutting_down:
      return {503, error.what(), "", "shutting_down"};
    default:
      return {500, error.what()};
  }
}

}  // namespace qwench::server
