// The first byte names a route, the rest is a body. It is read, or refused with a status of a client's fault
// and a sentence that fits into JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <string>

#include "server/anthropic_request.h"
#include "server/api_error.h"
#include "server/generation_routes.h"
#include "server/ollama_request.h"
#include "server/request_body.h"

namespace {

constexpr const char* kRoutes[] = {"/v1/chat/completions", "/v1/completions", "/v1/embeddings",
                                   "/v1/responses",        "/v1/messages",    "/api/chat",
                                   "/api/generate",        "/api/embed"};
constexpr size_t kOthers = 5;

void read_other(size_t which, const qwench::Json& body, const qwench::server::ServedModel& model) {
  namespace server = qwench::server;
  switch (which) {
    case 0:
      static_cast<void>(server::read_tokenize_body(body));
      break;
    case 1:
      static_cast<void>(server::read_detokenize_body(body));
      break;
    case 2:
      static_cast<void>(server::read_apply_template_body(body));
      break;
    case 3:
      static_cast<void>(server::read_anthropic_count_body(body, model));
      break;
    default:
      static_cast<void>(server::read_ollama_show_body(body));
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 14;
  if (size == 0 || size > kLimit) return 0;
  qwench::server::ServedModel model;
  model.context = 4096;
  model.embedding_size = 64;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t which = data[0] % (std::size(kRoutes) + kOthers);
  try {
    const qwench::Json body = qwench::server::parse_body(text);
    if (which >= std::size(kRoutes)) {
      read_other(which - std::size(kRoutes), body, model);
      return 0;
    }
    const auto read = qwench::server::generation_reader(kRoutes[which])(body, model);
    const qwench::Request& settings = read.settings;
    if (settings.n < 1 || settings.n > 1024 || settings.stop.max_tokens < -1) std::abort();
    static_cast<void>(settings.sampling.resolve());
    if (read.chat && read.prompts.size() + read.messages.input.messages.size() == 0) std::abort();
  } catch (const qwench::server::ApiError& error) {
    if (error.status() != 400 || std::string(error.what()).empty()) std::abort();
    static_cast<void>(error.to_response().body.size());
  }
  return 0;
}
