#include "server/embeddings.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "engine/embedding.h"
#include "server/api_error.h"
#include "server/body_fields.h"
#include "server/field_schemas.h"
#include "server/json_schema.h"
#include "server/ollama_common.h"
#include "server/request_fields.h"

namespace qwench::server {

using namespace fields;  // NOLINT(google-build-using-namespace): short words of one table

namespace {

/// What is wanted of each vector.
struct Wanted {
  int dimensions = 0;  // 0: all
  bool base64 = false;
};

/// One vector for each prompt; never a stream.
class EmbeddingAnswer : public AnswerFormat {
 public:
  EmbeddingAnswer(AnswerHead head, size_t prompts, Wanted wanted)
      : head_(std::move(head)), wanted_(wanted), vectors_(prompts) {}

  std::string take(int, const StreamDelta&) override { return {}; }
  std::string last_events(const AnswerTotals&) override { return {}; }
  std::string error_events(const ApiError&) const override { return {}; }
  void take_result(const PromptChoices& prompt, int, const Result& result) override {
    vectors_[static_cast<size_t>(prompt.first_choice)] = unit_vector(result.embedding, wanted_.dimensions);
  }

 protected:
  AnswerHead head_;
  Wanted wanted_;
  std::vector<std::vector<float>> vectors_;  // [prompts]
};

class OpenAiEmbeddings final : public EmbeddingAnswer {
 public:
  using EmbeddingAnswer::EmbeddingAnswer;
  Json whole(const AnswerTotals& totals) override {
    Json data = Json::array();
    for (size_t i = 0; i < vectors_.size(); ++i) {
      data.push_back({{"object", "embedding"},
                      {"index", i},
                      {"embedding", wanted_.base64 ? Json(base64_of(vectors_[i])) : Json(vectors_[i])}});
    }
    return {{"object", "list"},
            {"data", std::move(data)},
            {"model", head_.model},
            {"usage",
             {{"prompt_tokens", totals.usage.prompt_tokens}, {"total_tokens", totals.usage.prompt_tokens}}}};
  }
};

class OllamaEmbeddings final : public EmbeddingAnswer {
 public:
  using EmbeddingAnswer::EmbeddingAnswer;
  Json whole(const AnswerTotals& totals) override {
    return {{"model", head_.model},
            {"embeddings", vectors_},
            {"total_duration", nanoseconds_of(totals.timings.queue_seconds + totals.timings.prefill_seconds)},
            {"load_duration", 0},
            {"prompt_eval_count", totals.usage.prompt_tokens}};
  }
  ErrorShape error_shape() const override { return ErrorShape::ollama; }
};

/// An empty text has no meaning to make a vector of, whatever tokens the tokenizer puts around it.
void refuse_empty_input(const Json& body) {
  const auto is_empty = [](const Json& value) {
    return value.is_string() ? value.get_ref<const std::string&>().empty()
                             : value.is_array() && value.empty();
  };
  const Json* input = given(body, "input");
  if (input == nullptr) return;
  if (is_empty(*input)) refuse_field("input", "it is empty");
  for (size_t i = 0; input->is_array() && i < input->size(); ++i) {
    if (is_empty((*input)[i])) refuse_field(fmt::format("input[{}]", i), "it is empty");
  }
}

template <typename Format>
GenerationBody read(const Json& body, const ServedModel& model, Wanted wanted) {
  GenerationBody read;
  if (const Json* name = given(body, "model")) read.model = name->get<std::string>();
  read.id_prefix = "embd-";
  read.prompts = read_prompts(body["input"]);
  if (const Json* dimensions = given(body, "dimensions")) {
    if (dimensions->get<double>() > model.embedding_size)
      refuse_field("dimensions", fmt::format("found {}, but the model's vectors have {} elements",
                                             dimensions->get<double>(), model.embedding_size));
    wanted.dimensions = static_cast<int>(dimensions->get<double>());
  }
  const Json* pooling = given(body, "pooling");
  read.settings.embedding = pooling != nullptr ? pooling_named(pooling->get<std::string>()) : model.pooling;
  if (!read.settings.embedding)
    refuse_field("pooling",
                 "the model's files ask for a pooling that is not supported; say \"mean\" or \"last\"");
  read.settings.stop.max_tokens = 0;
  read.make_answer = [wanted](AnswerHead head, const std::vector<PromptChoices>& prompts) {
    return std::make_unique<Format>(std::move(head), prompts.size(), wanted);
  };
  return read;
}

Json filled_text() { return {{"type", "string"}, {"minLength", 1}}; }

Json filled_texts() {
  return {{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxPrompts}, {"items", filled_text()}};
}

Json input_field() {
  Json ids = token_ids("");
  ids.erase("description");
  return either(
      {filled_text(),
       filled_texts(),
       ids,
       {{"type", "array"}, {"minItems", 1}, {"maxItems", kMaxPrompts}, {"items", ids}}},
      "A text, token ids, or several of them. The tokenizer puts around a text what it does around every "
      "text, such as the end token of Qwen3-Embedding; special tokens in it are recognised.");
}

Json pooling_field() {
  return described({{"enum", {"mean", "last", nullptr}}},
                   "The hidden states of all tokens averaged, or the last one's. When absent, what --pooling "
                   "says, else the model's files, else mean.");
}

}  // namespace

const Json& embeddings_fields() {
  static const Json fields = object_of(
      {{"model", model_field()},
       {"input", input_field()},
       {"encoding_format",
        described({{"enum", {"float", "base64", nullptr}}}, "Numbers, or little-endian float32 in base64.")},
       {"dimensions",
        whole(1, kLargestInt, "So many elements, the first ones, at length 1: for models trained for it.")},
       {"pooling", pooling_field()},
       {"user", nullable("string", "Without effect here, as on the answers of OpenAI's API.")}},
      {"input"});
  return fields;
}

const Json& ollama_embed_fields() {
  static const Json fields = object_of(
      {{"model", model_field()},
       {"input", either({filled_text(), filled_texts()}, "A text, or several.")},
       {"truncate", described({{"enum", {false, nullptr}}},
                              "A text that is longer than the context is refused, never cut; only false.")},
       {"dimensions", whole(1, kLargestInt, "So many elements, the first ones, at length 1.")},
       {"pooling", pooling_field()},
       {"keep_alive", ollama_keep_alive_field()},
       {"options", refused("options have no effect on embeddings; leave this field out")}},
      {"input"});
  return fields;
}

GenerationBody read_embeddings_body(const Json& body, const ServedModel& model) {
  refuse_empty_input(body);
  check_schema(body, embeddings_fields(), "");
  const Json* format = given(body, "encoding_format");
  return read<OpenAiEmbeddings>(body, model, {0, format != nullptr && *format == "base64"});
}

GenerationBody read_ollama_embed_body(const Json& body, const ServedModel& model) {
  refuse_empty_input(body);
  check_schema(body, ollama_embed_fields(), "");
  GenerationBody embed = read<OllamaEmbeddings>(body, model, {});
  embed.model = ollama_model_name(embed.model);
  return embed;
}

std::string base64_of(const std::vector<float>& vector) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  bytes.reserve(vector.size() * 4);
  for (const float x : vector) {
    const auto bits = std::bit_cast<uint32_t>(x);
    for (const unsigned shift : {0U, 8U, 16U, 24U}) bytes += static_cast<char>((bits >> shift) & 0xFFU);
  }
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8U | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    const size_t digits = std::min<size_t>(bytes.size() - at, 3) + 1;
    for (size_t i = 0; i < 4; ++i) text += i < digits ? kAlphabet[group >> (18 - 6 * i) & 63U] : '=';
  }
  return text;
}

}  // namespace qwench::server
