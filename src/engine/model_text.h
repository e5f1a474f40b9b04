#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace qwench {

/// The text side of a model: its tokenizer and chat templates, from a folder's files or from a GGUF file. A
/// folder needs no weights for it. Immutable, thread-safe.
class ModelText {
 public:
  /// Either may be missing; files that are there and broken throw Error.
  static ModelText open(const Checkpoint& checkpoint);
  static ModelText from_folder(const std::filesystem::path& folder);
  static ModelText from_gguf(const GgufFile& file);
  /// A folder, with or without weights, a GGUF file, or a tokenizer.json. Throws Error (not_found) where
  /// there is neither a tokenizer nor a template.
  static ModelText from_path(const std::filesystem::path& path);

  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }  ///< may be null
  const ChatTemplates* templates() const { return templates_ ? &*templates_ : nullptr; }

  /// Plain text, special tokens recognised, with the BOS the model asks for. Throws Error without a
  /// tokenizer.
  std::vector<TokenId> encode(std::string_view text) const;
  /// Messages through the model's template, with bos_token and eos_token filled in where the input leaves
  /// them open. Throws Error: not_found without a template, template_error.
  RenderedPrompt render(ChatTemplateInput input,
                        const std::optional<std::string>& template_name = std::nullopt) const;
  /// The rendered ids: special tokens are recognised only where the template itself wrote them.
  std::vector<TokenId> encode(const RenderedPrompt& prompt) const;
  std::vector<TokenId> encode_chat(const ChatTemplateInput& input,
                                   const std::optional<std::string>& template_name = std::nullopt) const;

  /// The tokenizer's eos_token, the special token with which the template closes an assistant's turn, and in
  /// a GGUF file, which has no generation_config.json, the control tokens that are known to end an answer.
  std::vector<TokenId> stop_ids() const;

 private:
  void set_templates(ChatTemplates templates);
  const Tokenizer& required_tokenizer() const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplates> templates_;
  bool without_generation_config_ = false;  // a GGUF file
  std::string where_;                       // for errors
};

}  // namespace qwench
