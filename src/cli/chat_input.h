#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "core/json.h"
#include "text/chat_template.h"

namespace qwench::cli {

/// The names that read_chat_field knows.
inline constexpr std::array<std::string_view, 8> kChatFields = {
    "messages", "tools", "documents", "add_generation_prompt", "kwargs", "bos_token", "eos_token", "now"};

/// Reads one of these fields of a line into what a template renders; "kwargs" goes over those already there.
/// False when `name` is none of them. Throws Error (invalid_argument) that names the field.
bool read_chat_field(std::string_view name, const Json& value, ChatTemplateInput& input);

/// Flags about the template and its variables.
class TemplateFlags {
 public:
  void add_to(CommandLine& line);
  /// To be called once after parsing. Throws UsageError.
  void finish();
  const Json& kwargs() const { return kwargs_; }  ///< {"enable_thinking": ...} and --kwargs
  const std::optional<std::string>& name() const { return name_; }
  const std::optional<bool>& thinking() const { return thinking_; }
  bool given() const { return name_ || !kwargs_.empty(); }

 private:
  bool think_ = false;
  bool no_think_ = false;
  std::string kwargs_text_;
  std::string name_text_;
  std::optional<std::string> name_;
  std::optional<bool> thinking_;
  Json kwargs_ = Json::object();
};

}  // namespace qwench::cli
