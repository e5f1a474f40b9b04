#include "server/ollama_pages.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include "server/ollama_common.h"
#include "server/version.h"
#include "text/chat_template.h"

namespace qwench::server {
namespace {

std::string digest_of(const std::string& text) {
  unsigned char bytes[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes);
  std::string hex;
  for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

Json details_of(const ModelInfo& info) {
  return {{"parent_model", ""},
          {"format", info.format.substr(0, info.format.find(' '))},  // "gguf", without its version
          {"family", info.family},
          {"families", Json::array({info.family})},
          {"parameter_size", ollama_count(info.parameters)},
          {"quantization_level", info.quantization}};
}

std::string template_of(const Engine& engine) {
  if (engine.chat_templates() == nullptr) return "";
  try {
    return engine.chat_templates()->select(std::nullopt, false).source();
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

Json ollama_models_page(const Engine& engine, const std::vector<std::string>& names) {
  const ModelInfo& info = engine.info();
  Json models = Json::array();
  for (const std::string& name : names) {
    models.push_back(
        {{"name", name},
         {"model", name},
         {"modified_at", utc_time(info.file_time)},
         {"size", info.file_bytes},
         {"digest", digest_of(fmt::format("{} {} {}", info.name, info.file_bytes, info.parameters))},
         {"details", details_of(info)},
         {"context_length", info.context}});
  }
  return Json{{"models", std::move(models)}};
}

Json ollama_show_page(const Engine& engine) {
  const ModelInfo& info = engine.info();
  const std::string source = template_of(engine);
  Json capabilities = Json::array({"completion", "embedding"});
  if (source.find("<tool_call>") != std::string::npos) capabilities.push_back("tools");
  if (source.find("<think>") != std::string::npos) capabilities.push_back("thinking");
  const auto key = [&](const char* field) { return fmt::format("{}.{}", info.family, field); };
  return {{"modelfile", ""},
          {"parameters", ""},
          {"template", source},
          {"details", details_of(info)},
          {"model_info",
           {{"general.architecture", info.family},
            {"general.basename", info.name},
            {"general.parameter_count", info.parameters},
            {key("context_length"), info.context},
            {key("embedding_length"), info.embedding_size},
            {key("vocab_size"), info.vocab_size}}},
          {"capabilities", std::move(capabilities)},
          {"modified_at", utc_time(info.file_time)}};
}

Json ollama_version_page() { return Json{{"version", kVersion}}; }

}  // namespace qwench::server
