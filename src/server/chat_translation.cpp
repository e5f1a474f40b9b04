#include "server/chat_translation.h"

#include <string_view>

#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/request_fields.h"

namespace qwench::server {

GenerationBody read_translated_chat(const Json& chat, std::span<const FieldName> names) {
  try {
    return read_chat_body(chat, translated_chat_fields());
  } catch (const ApiError& error) {
    std::string param = error.param();
    std::string sentence = error.what();
    for (const auto& [ours, theirs] : names) {
      const std::string_view field = ours;
      const size_t at = param.find(field);
      if (at == std::string::npos || (at > 0 && !field.starts_with('.'))) continue;
      if (sentence.starts_with(param)) sentence.replace(at, field.size(), theirs);
      param.replace(at, field.size(), theirs);
      if (!field.starts_with('.')) break;
    }
    throw ApiError(error.status(), sentence, param, error.code());
  }
}

void copy_field(const Json& from, const char* field, Json& chat, const char* name) {
  if (const Json* value = given(from, field)) chat[name != nullptr ? name : field] = *value;
}

}  // namespace qwench::server
