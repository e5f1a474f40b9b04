#include "engine/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/log.h"
#include "core/mapped_file.h"
#include "qwench/error.h"
#include "text/gguf_tokenizer.h"

namespace qwench {
namespace {

// A GGUF file names one eos, where the model's generation_config.json names several (Qwen: <|im_end|> and
// <|endoftext|>). These control tokens end an answer in every published model that has them.
constexpr std::string_view kEndTokens[] = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",           "<|end_of_text|>",
    "<|end|>",    "<|EOT|>",       "</s>",       "<｜end▁of▁sentence｜>"};

ChatTemplates templates_of(const GgufFile& file) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  std::map<std::string, std::string> strings;
  for (const std::string_view key : file.keys()) {
    if (key != kKey && !key.starts_with(std::string(kKey) + ".")) continue;
    strings.emplace(key, file.string(key).value_or(""));
  }
  return ChatTemplates::from_gguf(strings, file.what());
}

}  // namespace

ModelText ModelText::open(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return from_gguf(*checkpoint.gguf());
  return from_folder(checkpoint.folder());
}

ModelText ModelText::from_folder(const std::filesystem::path& folder) {
  ModelText text;
  text.where_ = folder.string();
  if (is_there(folder / "tokenizer.json")) text.tokenizer_ = Tokenizer::from_folder(folder);
  text.set_templates(ChatTemplates::from_folder(folder));
  return text;
}

ModelText ModelText::from_gguf(const GgufFile& file) {
  ModelText text;
  text.where_ = file.what();
  text.without_generation_config_ = true;
  if (has_gguf_vocabulary(file)) text.tokenizer_ = Tokenizer::from_gguf(read_gguf_vocabulary(file));
  text.set_templates(templates_of(file));
  return text;
}

ModelText ModelText::from_path(const std::filesystem::path& path) {
  if (!is_there(path)) {
    throw Error(ErrorKind::not_found, fmt::format("{}: there is no such file or folder", path.string()));
  }
  ModelText text;
  if (std::filesystem::is_directory(path)) {
    text = from_folder(path);
    if (!text.tokenizer_ && !text.templates_) text = open(*Checkpoint::open(path));
  } else if (path.extension() == ".gguf") {
    text = from_gguf(GgufFile::open(path));
  } else if (path.filename() == "tokenizer.json") {
    text = from_folder(path.parent_path());
  }
  if (!text.tokenizer_ && !text.templates_) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: neither a tokenizer.json nor a chat template nor a GGUF file with them",
                            path.string()));
  }
  return text;
}

void ModelText::set_templates(ChatTemplates templates) {
  if (!templates.empty()) templates_ = std::move(templates);
}

const Tokenizer& ModelText::required_tokenizer() const {
  if (tokenizer_) return *tokenizer_;
  throw Error(
      ErrorKind::not_found,
      fmt::format("{}: the model has no tokenizer (a tokenizer.json beside it, or one inside the GGUF); give "
                  "token ids: echo '{{\"ids\": [1, 2]}}' | qwench run MODEL --jsonl, and likewise for score",
                  where_));
}

std::vector<TokenId> ModelText::encode(std::string_view text) const {
  const Tokenizer& tokenizer = required_tokenizer();
  return tokenizer.add_special(tokenizer.encode(text, SpecialTokens::all));
}

RenderedPrompt ModelText::render(ChatTemplateInput input,
                                 const std::optional<std::string>& template_name) const {
  if (!templates_) {
    throw Error(ErrorKind::not_found,
                fmt::format("{}: the model has no chat template; send the prompt as it is (--raw)", where_));
  }
  const auto fill = [&](std::optional<std::string>& token, std::optional<TokenId> id) {
    if (!token.has_value() && id) token.emplace(tokenizer_->token_text(*id));
  };
  if (tokenizer_) {
    fill(input.bos_token, tokenizer_->bos());
    fill(input.eos_token, tokenizer_->eos());
  }
  return templates_->select(template_name, !input.tools.is_null()).render(input);
}

std::vector<TokenId> ModelText::encode(const RenderedPrompt& prompt) const {
  return required_tokenizer().encode(prompt.text, prompt.trusted);
}

std::vector<TokenId> ModelText::encode_chat(const ChatTemplateInput& input,
                                            const std::optional<std::string>& template_name) const {
  required_tokenizer();
  return encode(render(input, template_name));
}

std::vector<TokenId> ModelText::stop_ids() const {
  if (!tokenizer_) return {};
  std::vector<TokenId> ids = tokenizer_->stop_ids();
  if (without_generation_config_) {
    for (const std::string_view text : kEndTokens) {
      const std::optional<TokenId> id = tokenizer_->find(text);
      if (id && tokenizer_->is_special(*id)) ids.push_back(*id);
    }
  }
  if (!templates_) return ids;
  // The template closes an assistant's turn with a special token: the first after the content in a rendered
  // answer.
  constexpr std::string_view kContent = "qwench-end-of-turn-probe";
  ChatTemplateInput input;
  input.messages =
      Json::array({{{"role", "user"}, {"content", "x"}}, {{"role", "assistant"}, {"content", kContent}}});
  try {
    const RenderedPrompt prompt = render(std::move(input));
    const size_t at = prompt.text.rfind(kContent);
    if (at == std::string::npos) return ids;
    const size_t end = at + kContent.size();
    std::vector<ByteSpan> trusted;
    for (const ByteSpan& span : prompt.trusted) {
      if (span.end > end) trusted.push_back({std::max(span.begin, end) - end, span.end - end});
    }
    const std::vector<TokenId> after = tokenizer_->encode(std::string_view(prompt.text).substr(end), trusted);
    if (!after.empty() && tokenizer_->is_special(after.front())) ids.push_back(after.front());
  } catch (const Error& error) {
    log_detail(fmt::format("the chat template's end of turn is not known: {}", error.what()));
  }
  return ids;
}

}  // namespace qwench
