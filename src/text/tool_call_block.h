#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/tool_calls.h"
#include "text/tool_part_writer.h"

namespace qwench {

/// Reads what follows the tag that opens a block of calls, byte by byte.
class ToolCallBlock {
 public:
  enum class Step {
    more,
    refused,  ///< what was read since the tag, or since the block's last call, is no call
    ended,
  };

  virtual ~ToolCallBlock() = default;
  virtual Step feed(char c) = 0;
  /// The text ends here; `cut`: it would have gone on.
  virtual Step finish(bool cut) = 0;
  /// What was read but is not of the block: with `refused` from the tag on.
  const std::string& rest() const { return rest_; }

 protected:
  explicit ToolCallBlock(ToolPartWriter& writer) : writer_(writer) {}
  Step end(std::string rest = {}) {
    rest_ = std::move(rest);
    return Step::ended;
  }
  Step refuse(std::string rest) {
    rest_ = std::move(rest);
    return Step::refused;
  }

  ToolPartWriter& writer_;

 private:
  std::string rest_;
};

inline constexpr std::string_view kToolCallOpen = "<tool_call>";
inline constexpr std::string_view kToolCallClose = "</tool_call>";
inline constexpr std::string_view kFunctionOpen = "<function=";
// Models of Hermes's form that forget the tag write the object alone, or fenced as code.
inline constexpr std::string_view kBareCallOpen = "{";
inline constexpr std::string_view kFencedCallOpens[] = {"```json\n{", "```\n{"};
inline constexpr std::string_view kFenceClose = "```";

// `tag` is what opened the block, one of the above; `tools` must outlive it.
std::unique_ptr<ToolCallBlock> make_hermes_block(const std::vector<ToolDeclaration>& tools,
                                                 std::string_view tag, ToolPartWriter& writer);
std::unique_ptr<ToolCallBlock> make_qwen3_coder_block(const std::vector<ToolDeclaration>& tools,
                                                      std::string_view tag, ToolPartWriter& writer);

/// What a call has before its arguments begin, at most, in bytes.
inline constexpr size_t kLongestCallHead = size_t{1} << 16;
inline constexpr size_t kLongestToolName = 256;

}  // namespace qwench
