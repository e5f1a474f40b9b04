#pragma once

#include <optional>
#include <string_view>

#include "core/json.h"
#include "server/request_body.h"

namespace qwench::server {

/// What a body's reader has to know of the model.
struct ServedModel {
  int context = 0;
  int embedding_size = 0;
  std::optional<Pooling> pooling;  ///< of embeddings that name none
};

/// Checks a body and says what the engine is to do and how it is answered. Throws ApiError (400).
using BodyReader = GenerationBody (*)(const Json& body, const ServedModel& model);

/// The reader of a route that runs the model; null for other paths.
BodyReader generation_reader(std::string_view path);

}  // namespace qwench::server
