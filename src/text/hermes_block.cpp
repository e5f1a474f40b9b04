#include <algorithm>
#include <optional>
#include <utility>

#include "qwench/error.h"
#include "text/json_scanner.h"
#include "text/tool_call_block.h"

namespace qwench {
namespace {

std::optional<Json> parsed(std::string_view text) {
  try {
    return parse_json(text, "a call");
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// {"name": ..., "arguments": ...} and the closing tag; several objects may stand in one block. Without the
/// tag, only what has a known name and arguments is a call.
class HermesBlock final : public ToolCallBlock {
 public:
  HermesBlock(const std::vector<ToolDeclaration>& tools, std::string_view tag, ToolPartWriter& writer)
      : ToolCallBlock(writer), tools_(tools), bare_(tag != kToolCallOpen), close_(kToolCallClose) {
    call_.head = tag;
    if (!bare_) return;
    if (tag != kBareCallOpen) close_ = kFenceClose;
    call_.head.pop_back();
    feed_object('{');
  }

  Step feed(char c) override {
    switch (state_) {
      case State::object:
        return feed_object(c);
      case State::broken:
        return feed_broken(c);
      case State::behind:
        break;
    }
    return feed_behind(c);
  }

  Step finish(bool cut) override {
    if (state_ == State::broken) writer_.add_arguments(held_ + tag_);
    if (state_ != State::object || call_.begun) return end();
    if (!cut || (bare_ && !call_.name)) return refuse(call_.head);
    if (call_.name) {
      begin("");
    } else {
      writer_.drop_call();
    }
    return end();
  }

 private:
  enum class State {
    object,  // of a call
    broken,  // its arguments, which are no JSON
    behind,  // the object, before the closing tag
  };
  enum class Member { name, arguments, other };

  struct Call {
    std::string head;  // what was read before it began
    JsonScanner scanner;
    std::string key;  // with its quotes
    std::string value;
    Member member = Member::other;
    std::optional<std::string> name;
    std::optional<std::string> arguments;  // that wait for the name
    bool begun = false;
    bool streaming = false;  // the value is the arguments, which have begun
  };

  Step feed_object(char c) {
    JsonScanner& scanner = call_.scanner;
    if (!call_.begun) {
      call_.head += c;
      if (call_.head.size() > kLongestCallHead) return refuse(call_.head);
    }
    const int before = scanner.depth();
    if (before == 0 && !is_json_space(c) && c != '{') return refuse(call_.head);
    const bool in_string = scanner.in_string();
    const bool in_key = scanner.in_key();
    const bool in_scalar = before == 1 && scanner.in_scalar();
    if (!scanner.feed(c)) return malformed(c);

    if (in_scalar && !scanner.in_scalar() && !end_value()) return refuse(call_.head);
    if (before == 1 && (in_key || scanner.in_key())) {
      if (!in_key) call_.key.clear();
      call_.key += c;
      // An object of other members is an answer of its own, which should not wait.
      if (bare_ && !scanner.in_key() && !call_.begun && member_of(call_.key) == Member::other)
        return refuse(call_.head);
    } else if (before > 1 || scanner.depth() > 1 || in_string || scanner.in_string() || scanner.in_scalar()) {
      add_to_value(c, in_string);
      if (scanner.depth() == 1 && scanner.between_members() && !end_value()) return refuse(call_.head);
    }
    if (!scanner.complete()) return Step::more;
    if (!call_.begun) {
      if (!call_.name || bare_) return refuse(call_.head);
      begin("{}");
    }
    end_call();
    return Step::more;
  }

  void add_to_value(char c, bool in_string) {
    if (call_.value.empty() && !call_.streaming) {
      call_.member = member_of(call_.key);
      // Once the tool is known, its arguments need not wait for their end.
      if (call_.member == Member::arguments && c == '{' && call_.name) {
        begin("");
        call_.streaming = true;
      }
    }
    const bool control = in_string && static_cast<unsigned char>(c) < 0x20;
    const std::string json = control ? json_control_escape(c) : std::string(1, c);
    if (call_.streaming) {
      writer_.add_arguments(json);
    } else {
      call_.value += json;
    }
  }

  Member member_of(const std::string& key) const {
    if (call_.begun) return Member::other;
    if (key == "\"name\"" && !call_.name) return Member::name;
    const bool arguments = key == "\"arguments\"" || key == "\"parameters\"";
    return arguments && !call_.arguments ? Member::arguments : Member::other;
  }

  /// False where the member's value is none that a call has.
  bool end_value() {
    const std::string value = std::exchange(call_.value, {});
    if (std::exchange(call_.streaming, false) || call_.begun) return true;
    if (call_.member == Member::name) {
      const std::optional<Json> name = parsed(value);
      if (!name || !name->is_string()) return false;
      call_.name = name->get<std::string>();
      if (call_.name->empty() || call_.name->size() > kLongestToolName) return false;
      if (bare_ && !goes_without_tag(*call_.name)) return false;
    } else if (call_.member == Member::arguments) {
      call_.arguments = arguments_of(value);
      if (!call_.arguments) return false;
    }
    if (call_.name && call_.arguments) begin(*call_.arguments);
    return true;
  }

  bool goes_without_tag(std::string_view name) const {
    return std::any_of(tools_.begin(), tools_.end(), [&](const ToolDeclaration& tool) {
      return tool.name == name && (!tool.held_to_schema || (!call_.arguments && writer_.calls() == 0));
    });
  }

  static std::optional<std::string> arguments_of(const std::string& value) {
    if (value == "null") return "{}";
    if (value.front() == '{') return value;
    const std::optional<Json> text = parsed(value);
    if (!text || !text->is_string()) return std::nullopt;
    const std::optional<Json> inner = parsed(text->get<std::string>());
    if (!inner || !inner->is_object()) return std::nullopt;
    return text->get<std::string>();
  }

  void begin(std::string_view arguments) {
    call_.begun = true;
    call_.head.clear();
    writer_.begin_call(*call_.name);
    writer_.add_arguments(arguments);
  }

  void end_call() {
    writer_.end_call();
    state_ = State::behind;
  }

  Step malformed(char c) {
    if (!call_.begun) return refuse(call_.head);
    if (!call_.streaming) {  // the arguments are whole; what follows them is no member
      end_call();
      return feed_behind(c);
    }
    state_ = State::broken;
    return feed_broken(c);
  }

  /// Up to the closing tag, without the brace that would have closed the object.
  Step feed_broken(char c) {
    tag_ += c;
    while (!close_.starts_with(tag_)) {
      const char first = tag_.front();
      tag_.erase(0, 1);
      if (!is_json_space(first) && first != '}') writer_.add_arguments(std::exchange(held_, {}));
      held_ += first;
    }
    if (tag_ != close_) return Step::more;
    std::string_view rest = held_;
    if (const size_t brace = rest.rfind('}'); brace != std::string_view::npos) rest = rest.substr(0, brace);
    while (!rest.empty() && is_json_space(rest.back())) rest.remove_suffix(1);
    writer_.add_arguments(rest);
    writer_.end_call();
    return end();
  }

  Step feed_behind(char c) {
    if (tag_.empty()) {
      if (is_json_space(c) || c == '}') return Step::more;
      if (c == '{') {
        call_ = {};
        state_ = State::object;
        return feed_object(c);
      }
    }
    tag_ += c;
    if (tag_ == close_) return end();
    return close_.starts_with(tag_) ? Step::more : end(tag_);
  }

  const std::vector<ToolDeclaration>& tools_;
  bool bare_;
  std::string_view close_;
  State state_ = State::object;
  Call call_;
  std::string held_;  // of broken arguments
  std::string tag_;   // the beginning of the closing one
};

}  // namespace

std::unique_ptr<ToolCallBlock> make_hermes_block(const std::vector<ToolDeclaration>& tools,
                                                 std::string_view tag, ToolPartWriter& writer) {
  return std::make_unique<HermesBlock>(tools, tag, writer);
}

}  // namespace qwench
