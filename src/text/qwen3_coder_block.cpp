#include <algorithm>
#include <array>
#include <utility>

#include "text/json_scanner.h"
#include "text/parameter_type.h"
#include "text/tool_call_block.h"

namespace qwench {
namespace {

constexpr std::string_view kFunctionClose = "</function>";
constexpr std::string_view kParameterOpen = "<parameter=";
constexpr std::string_view kParameterClose = "</parameter>";
constexpr std::string_view kNull = "null";

/// <function=NAME>, parameters, </function> and the closing tag, which may be missing where "<function="
/// opened the block.
class Qwen3CoderBlock final : public ToolCallBlock {
 public:
  Qwen3CoderBlock(const std::vector<ToolDeclaration>& tools, std::string_view tag, ToolPartWriter& writer)
      : ToolCallBlock(writer), tools_(tools), head_(tag), bare_(tag == kFunctionOpen) {
    if (bare_) state_ = State::name;
  }

  Step feed(char c) override {
    switch (state_) {
      case State::start:
        return feed_start(c);
      case State::name:
        return feed_name(c);
      case State::between:
        return feed_between(c);
      case State::parameter_name:
        return feed_parameter_name(c);
      case State::value:
        return feed_value(c);
      case State::behind:
        break;
    }
    return feed_behind(c);
  }

  Step finish(bool cut) override {
    if (state_ != State::start && state_ != State::name) return end();
    const bool may_become_one = !bare_ || std::any_of(tools_.begin(), tools_.end(), [&](const auto& tool) {
      return !tool.held_to_schema && tool.name.starts_with(name_);
    });
    if (!cut || !may_become_one) return refuse(head_);
    writer_.drop_call();
    return end();
  }

 private:
  enum class State {
    start,           // before <function=
    name,            // of the function
    between,         // parameters
    parameter_name,  // of the parameter
    value,           // of the parameter
    behind,          // the function
  };

  Step feed_start(char c) {
    head_ += c;
    if (head_.size() > kLongestCallHead) return refuse(head_);
    if (tag_.empty() && is_json_space(c)) return Step::more;
    tag_ += c;
    if (!kFunctionOpen.starts_with(tag_)) return refuse(head_);
    if (tag_ == kFunctionOpen) begin_name();
    return Step::more;
  }

  void begin_name() {
    tag_.clear();
    name_.clear();
    state_ = State::name;
  }

  const ToolDeclaration* declared(std::string_view name) const {
    for (const ToolDeclaration& tool : tools_) {
      if (tool.name == name) return &tool;
    }
    return nullptr;
  }

  Step feed_name(char c) {
    head_ += c;
    if (c != '>') {
      name_ += c;
      const bool fits = name_.size() <= kLongestToolName && c != '<' && !is_json_space(c);
      return fits ? Step::more : refuse(head_);
    }
    tool_ = declared(name_);
    // Without the block's own tag, a name that is not known is no call: text may speak of functions.
    if (name_.empty() || (bare_ && (tool_ == nullptr || tool_->held_to_schema))) return refuse(head_);
    head_.clear();
    writer_.begin_call(name_);
    members_ = 0;
    state_ = State::between;
    return Step::more;
  }

  void end_function() {
    writer_.add_arguments(members_ == 0 ? "{}" : "}");
    writer_.end_call();
    tag_.clear();
    state_ = State::behind;
  }

  Step feed_between(char c) {
    if (tag_.empty() && is_json_space(c)) return Step::more;
    tag_ += c;
    if (tag_ == kParameterOpen) {
      begin_parameter();
    } else if (tag_ == kFunctionClose) {
      end_function();
    } else if (tag_ == kToolCallClose) {
      end_function();
      return end();
    } else if (!kParameterOpen.starts_with(tag_) && !kFunctionClose.starts_with(tag_) &&
               !kToolCallClose.starts_with(tag_)) {
      const char first = tag_.front();
      writer_.add_content(std::string_view(&first, 1));
      const std::string again = std::exchange(tag_, {}).substr(1);
      for (const char next : again) {
        if (const Step step = feed_between(next); step != Step::more) return step;
      }
    }
    return Step::more;
  }

  void begin_parameter() {
    tag_.clear();
    parameter_.clear();
    state_ = State::parameter_name;
  }

  Step feed_parameter_name(char c) {
    if (c != '>') {
      parameter_ += c;
      return Step::more;
    }
    std::string json = members_++ == 0 ? "{\"" : ", \"";
    append_json_escaped(json, parameter_);
    writer_.add_arguments(json + "\": ");
    type_ = parameter_type(tool_ == nullptr ? Json() : tool_->parameters, parameter_);
    value_.clear();
    value_begins_ = true;
    streaming_ = false;
    state_ = State::value;
    return Step::more;
  }

  Step feed_value(char c) {
    if (std::exchange(value_begins_, false) && c == '\n') return Step::more;
    tag_ += c;
    while (!tag_.empty()) {
      if (tag_ == kParameterClose || tag_ == "\n</parameter>") {
        end_value();
        return Step::more;
      }
      // The official parser too lets the next tag end a value that lacks its own.
      if (tag_ == "\n<parameter=") {
        end_value();
        begin_parameter();
        return Step::more;
      }
      if (tag_ == "\n</function>") {
        end_value();
        end_function();
        return Step::more;
      }
      if (tag_ == "\n</tool_call>") {
        end_value();
        end_function();
        return end();
      }
      if (may_end_value()) return Step::more;
      add_to_value(tag_.front());
      tag_.erase(0, 1);
    }
    return Step::more;
  }

  bool may_end_value() const {
    constexpr std::array<std::string_view, 5> kEnds = {kParameterClose, "\n</parameter>",
                                                       "\n<parameter=", "\n</function>", "\n</tool_call>"};
    for (const std::string_view end : kEnds) {
      if (end.starts_with(tag_)) return true;
    }
    return false;
  }

  void add_to_value(char c) {
    if (streaming_) {
      std::string json;
      append_json_escaped(json, std::string_view(&c, 1));
      writer_.add_arguments(json);
      return;
    }
    value_ += c;
    if (type_ != ParameterType::string || is_null(value_.size())) return;
    std::string json = "\"";
    append_json_escaped(json, std::exchange(value_, {}));
    writer_.add_arguments(json);
    streaming_ = true;
  }

  /// Whether the value begins like null, in any case, on `length` bytes.
  bool is_null(size_t length) const {
    if (length > kNull.size() || value_.size() != length) return false;
    for (size_t i = 0; i < length; ++i) {
      if (static_cast<char>(value_[i] | 0x20) != kNull[i]) return false;
    }
    return true;
  }

  void end_value() {
    tag_.clear();
    state_ = State::between;
    if (streaming_) return writer_.add_arguments("\"");
    writer_.add_arguments(is_null(kNull.size()) ? std::string(kNull) : parameter_json(type_, value_));
  }

  Step feed_behind(char c) {
    if (tag_.empty() && is_json_space(c)) return Step::more;
    tag_ += c;
    if (tag_ == kToolCallClose) return end();
    if (tag_ == kFunctionOpen) {
      head_ = tag_;
      begin_name();
      return Step::more;
    }
    return kToolCallClose.starts_with(tag_) || kFunctionOpen.starts_with(tag_) ? Step::more : end(tag_);
  }

  const std::vector<ToolDeclaration>& tools_;
  State state_ = State::start;
  std::string head_;  // what was read before the call began
  bool bare_;
  std::string tag_;  // what may become one
  std::string name_;
  const ToolDeclaration* tool_ = nullptr;
  int members_ = 0;
  std::string parameter_;
  ParameterType type_ = ParameterType::string;
  std::string value_;
  bool value_begins_ = false;
  bool streaming_ = false;  // a string's value, which has begun
};

}  // namespace

std::unique_ptr<ToolCallBlock> make_qwen3_coder_block(const std::vector<ToolDeclaration>& tools,
                                                      std::string_view tag, ToolPartWriter& writer) {
  return std::make_unique<Qwen3CoderBlock>(tools, tag, writer);
}

}  // namespace qwench
