#include "server/model_pages.h"

#include <charconv>
#include <ctime>

#include "engine/sampling_options.h"
#include "server/request_fields.h"
#include "server/version.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace qwench::server {
namespace {

Json special_token(const Tokenizer* tokenizer, std::optional<TokenId> id) {
  return tokenizer == nullptr || !id ? Json(nullptr) : Json(tokenizer->token_text(*id));
}

Json template_source(const ChatTemplates* templates) {
  if (templates == nullptr) return nullptr;
  try {
    return templates->select(std::nullopt, false).source();
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

Json model_page(const Engine* engine, const std::string& name) {
  static const std::time_t started = std::time(nullptr);
  Json page{{"id", name}, {"object", "model"}, {"created", started}, {"owned_by", "qwench"}};
  if (engine != nullptr) {
    const ModelInfo& info = engine->info();
    page["max_model_len"] = info.context;
    page["meta"] = {{"family", info.family},           {"format", info.format},
                    {"weight_type", info.weight_type}, {"parameters", info.parameters},
                    {"vocab_size", info.vocab_size},   {"max_context", info.max_context}};
  }
  return page;
}

Json props_page(const Engine& engine, const std::vector<std::string>& names) {
  const ModelInfo& info = engine.info();
  Json settings = to_json(engine.generation_defaults().resolve());
  add_to_json(StopParams{}, settings);
  const auto tokenizer = engine.tokenizer();
  const int64_t cached = int64_t{engine.stats().kv_blocks_total} * kKvBlockTokens;
  return {
      {"version", kVersion},
      {"models", names},
      {"model", model_page(&engine, names.front())},
      {"device", info.device},
      {"threads", info.threads},
      {"context", info.context},
      {"max_batch", info.max_batch},
      {"max_batch_tokens", info.max_batch_tokens},
      {"kv_cache", {{"tokens", cached}, {"bytes", cached * static_cast<int64_t>(info.kv_bytes_per_token)}}},
      {"default_generation_settings", std::move(settings)},
      {"stop_token_ids", engine.stop_ids()},
      {"bos_token", special_token(tokenizer.get(), tokenizer ? tokenizer->bos() : std::nullopt)},
      {"eos_token", special_token(tokenizer.get(), tokenizer ? tokenizer->eos() : std::nullopt)},
      {"chat_template", template_source(engine.chat_templates())},
      {"limits",
       {{"messages", kMaxMessages},
        {"prompts", kMaxPrompts},
        {"n", kMaxCompletions},
        {"stop", kMaxStopStrings},
        {"top_logprobs", kMaxTopLogprobs}}}};
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace qwench::server
