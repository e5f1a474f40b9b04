#include "convert/gguf_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/log.h"
#include "core/mapped_file.h"
#include "qwench/error.h"
#include "text/gguf_tokenizer.h"
#include "text/gguf_tokenizer_pre.h"

namespace qwench {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& what) {
  throw Error(ErrorKind::unsupported, fmt::format("{}: {}", file, what));
}

/// Both spellings of a tokenizer.json: "a b" and ["a", "b"].
std::vector<std::string> merges_of(const Json& model) {
  std::vector<std::string> merges;
  for (const Json& merge : model.at("merges")) {
    merges.push_back(merge.is_string()
                         ? merge.get<std::string>()
                         : merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
  }
  return merges;
}

void add_tokens(GgufWriter& writer, const Tokenizer& tokenizer, int vocab_size) {
  std::vector<std::string> tokens;
  std::vector<int32_t> types;
  for (TokenId id = 0; id < vocab_size; ++id) {
    GgufTokenType type = GgufTokenType::normal;
    if (!tokenizer.has(id)) {
      type = GgufTokenType::unused;
    } else if (tokenizer.is_special(id)) {
      type = GgufTokenType::control;
    } else if (tokenizer.is_added(id)) {
      type = GgufTokenType::user_defined;
    }
    tokens.push_back(type == GgufTokenType::unused ? fmt::format("[PAD{}]", id) : tokenizer.token_text(id));
    types.push_back(static_cast<int32_t>(type));
  }
  writer.add_texts("tokenizer.ggml.tokens", tokens);
  writer.add_integers("tokenizer.ggml.token_type", types);
}

void add_special_ids(GgufWriter& writer, const Checkpoint& checkpoint, const ModelText& text) {
  const Tokenizer& tokenizer = *text.tokenizer();
  const auto add = [&](const char* which, std::optional<TokenId> id) {
    if (id) writer.add_count(fmt::format("tokenizer.ggml.{}_token_id", which), static_cast<uint32_t>(*id));
  };
  // The format has three names for ids that end an answer.
  std::vector<TokenId> ends;
  const auto end = [&](TokenId id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  if (tokenizer.eos()) end(*tokenizer.eos());
  for (const TokenId id : checkpoint.stop_token_ids()) end(id);
  for (const TokenId id : text.stop_ids()) end(id);
  constexpr const char* kNames[] = {"eos", "eot", "eom"};
  for (size_t i = 0; i < ends.size() && i < std::size(kNames); ++i) add(kNames[i], ends[i]);
  if (ends.size() > std::size(kNames)) {
    log_warning(fmt::format("{} ids end an answer of this model; the file names the first {}", ends.size(),
                            std::size(kNames)));
  }
  add("bos", tokenizer.bos());
  add("padding", tokenizer.pad());
  add("unknown", tokenizer.unk());
  const std::vector<TokenId> around = tokenizer.add_special({});
  const auto has = [&](std::optional<TokenId> id, bool first) {
    return id && !around.empty() && (first ? around.front() : around.back()) == *id;
  };
  writer.add_flag("tokenizer.ggml.add_bos_token", has(tokenizer.bos(), true));
  writer.add_flag("tokenizer.ggml.add_eos_token",
                  has(tokenizer.eos(), false) && !(around.size() == 1 && tokenizer.bos() == tokenizer.eos()));
}

void add_templates(GgufWriter& writer, const ChatTemplates& templates) {
  std::vector<std::string> others;
  for (const std::string& name : templates.names()) {
    const std::string source = templates.select(name, false).source();
    if (name == "default") {
      writer.add_text("tokenizer.chat_template", source);
    } else {
      writer.add_text("tokenizer.chat_template." + name, source);
      others.push_back(name);
    }
  }
  if (!others.empty()) writer.add_texts("tokenizer.chat_templates", others);
}

}  // namespace

void add_vocabulary(GgufWriter& writer, const Checkpoint& checkpoint, const ModelText& text) {
  if (text.templates() != nullptr) add_templates(writer, *text.templates());
  if (!text.tokenizer()) return;
  const std::filesystem::path path = checkpoint.folder() / "tokenizer.json";
  const std::string file = path.string();
  const Json json = parse_json(MappedFile::open(path).text(), file);
  const Json& model = json.at("model");
  if (model.value("byte_fallback", false)) {
    refuse(file,
           "a SentencePiece tokenizer, whose scores a tokenizer.json does not hold; byte-level BPE "
           "can be written");
  }
  const Json none = nullptr;
  const auto part = [&](const char* key) -> const Json& {
    const auto found = json.find(key);
    return found == json.end() ? none : *found;
  };
  const auto pre =
      gguf_pre_tokenizer_name(part("normalizer"), part("pre_tokenizer"), model.value("ignore_merges", false));
  if (!pre) {
    refuse(file, fmt::format("GGUF has no name for this way of cutting text (pre_tokenizer and normalizer); "
                             "it has for those of {}",
                             known_gguf_pre_tokenizers()));
  }
  if (text.tokenizer()->size() > checkpoint.config().vocab_size) {
    refuse(file, fmt::format("there are tokens up to id {}, but the model has {} rows for them",
                             text.tokenizer()->size() - 1, checkpoint.config().vocab_size));
  }
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_text("tokenizer.ggml.pre", *pre);
  add_tokens(writer, *text.tokenizer(), checkpoint.config().vocab_size);
  writer.add_texts("tokenizer.ggml.merges", merges_of(model));
  add_special_ids(writer, checkpoint, text);
}

}  // namespace qwench
