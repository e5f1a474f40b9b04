#include "text/tool_calls.h"

#include <utility>

#include "core/utf8.h"
#include "text/tool_call_block.h"
#include "text/tool_part_writer.h"

namespace qwench {

ToolCallParser::ToolCallParser(ToolCallOptions options)
    : options_(std::make_unique<ToolCallOptions>(std::move(options))),
      writer_(std::make_unique<ToolPartWriter>(options_->parallel, !options_->calls_only)) {}

ToolCallParser::~ToolCallParser() = default;
ToolCallParser::ToolCallParser(ToolCallParser&&) noexcept = default;
ToolCallParser& ToolCallParser::operator=(ToolCallParser&&) noexcept = default;

int ToolCallParser::calls() const { return writer_->calls(); }
bool ToolCallParser::open() const { return writer_->open(); }

std::vector<ToolTextPart> ToolCallParser::push(std::string_view text) {
  input_ += text;
  // Half a character waits, so that no part ends inside one.
  const size_t whole = input_.size() - static_cast<size_t>(incomplete_utf8_suffix(input_));
  const std::string waiting = input_.substr(whole);
  input_.resize(whole);
  read();
  input_ = waiting;
  return writer_->take();
}

std::vector<ToolTextPart> ToolCallParser::finish(bool cut) {
  cut = cut || options_->calls_only;
  read();
  while (block_) {
    if (block_->finish(cut) == ToolCallBlock::Step::refused) {
      refuse_block();
      read();
    } else {
      block_.reset();
    }
  }
  writer_->add_content(std::exchange(tag_, {}));
  writer_->finish();
  return writer_->take();
}

/// What looked like a block is content; a call may begin behind its first byte.
void ToolCallParser::refuse_block() {
  const std::string text = block_->rest();
  block_.reset();
  writer_->add_content(text.substr(0, 1));
  input_.insert(0, text.substr(1));
}

void ToolCallParser::read() {
  size_t at = 0;
  while (at < input_.size()) {
    const char c = input_[at++];
    if (!block_) {
      read_content(c);
      continue;
    }
    const ToolCallBlock::Step step = block_->feed(c);
    if (step == ToolCallBlock::Step::more) continue;
    input_.erase(0, std::exchange(at, 0));
    if (step == ToolCallBlock::Step::refused) {
      refuse_block();
    } else {
      input_.insert(0, block_->rest());
      block_.reset();
    }
  }
  input_.clear();
}

/// What may open a block here.
bool ToolCallParser::opens(std::string_view text, bool whole) const {
  const auto is = [&](std::string_view tag) { return whole ? tag == text : tag.starts_with(text); };
  if (options_->calls_or_content && writer_->calls() == 0 && writer_->has_content()) return false;
  if (is(kToolCallOpen)) return true;
  if (options_->calls_or_content || options_->calls_only) return false;
  if (options_->syntax == ToolSyntax::qwen3_coder) return is(kFunctionOpen);
  if (writer_->has_content()) return false;
  return is(kBareCallOpen) || is(kFencedCallOpens[0]) || is(kFencedCallOpens[1]);
}

void ToolCallParser::read_content(char c) {
  tag_ += c;
  if (opens(tag_, true)) {
    block_ = options_->syntax == ToolSyntax::qwen3_coder
                 ? make_qwen3_coder_block(options_->tools, tag_, *writer_)
                 : make_hermes_block(options_->tools, tag_, *writer_);
    tag_.clear();
  }
  while (!tag_.empty() && !opens(tag_, false)) {
    writer_->add_content(tag_.substr(0, 1));
    tag_.erase(0, 1);
  }
}

ToolMessage parse_tool_calls(const ToolCallOptions& options, std::string_view text, bool cut) {
  ToolCallParser parser(options);
  ToolMessage message;
  const auto add = [&](const std::vector<ToolTextPart>& parts) {
    for (const ToolTextPart& part : parts) {
      switch (part.kind) {
        case ToolTextPart::Kind::content:
          message.content += part.text;
          break;
        case ToolTextPart::Kind::call:
          message.calls.push_back({part.text, ""});
          break;
        case ToolTextPart::Kind::arguments:
          message.calls.back().arguments += part.text;
          break;
      }
    }
  };
  add(parser.push(text));
  add(parser.finish(cut));
  message.open = parser.open();
  return message;
}

bool flags_tool_tags_special(const Tokenizer& tokenizer) {
  const auto flagged = [&](std::string_view tag) {
    const std::optional<TokenId> id = tokenizer.find(tag);
    return id && tokenizer.is_special(*id);
  };
  return flagged(kToolCallOpen) || flagged(kToolCallClose);
}

std::optional<ToolSyntax> tool_syntax(const ChatTemplate& chat_template) {
  if (!chat_template.reads("tools")) return std::nullopt;
  const std::string& source = chat_template.source();
  const bool functions =
      source.find("<function=") != std::string::npos && source.find("<parameter=") != std::string::npos;
  return functions ? ToolSyntax::qwen3_coder : ToolSyntax::hermes;
}

}  // namespace qwench
