#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/reasoning.h"
#include "qwench/stream.h"
#include "text/tool_calls.h"

namespace qwench::server {

/// What a part of an answer adds to a chat message. Its reasoning comes before the rest.
struct ChoicePart {
  std::string reasoning;
  std::vector<ToolTextPart> answer;  ///< content and calls, in the order of the text

  std::string content() const;
};

/// Splits a chat answer into its reasoning, its content and its calls of tools, as they appear. Newlines
/// beside the tags belong to neither: the templates of models that reason write them, and drop them from
/// history, the same way. Joined, the parts do not depend on how the text was chopped.
class ChoiceText {
 public:
  /// `tools`: absent where calls are not looked for.
  explicit ChoiceText(ReasoningStart reasoning, const std::optional<ToolCallOptions>& tools = std::nullopt);

  ChoicePart push(const StreamDelta& delta);  ///< with the last one all is told
  bool in_reasoning() const { return in_reasoning_; }
  bool called() const;  ///< the answer has a call, and its last one is complete

 private:
  void add(const std::vector<AnswerPart>& parts, ChoicePart& into);
  void add_answer(std::string_view text, ChoicePart& into);

  ReasoningSplitter splitter_;
  std::optional<ToolCallParser> tools_;
  bool in_reasoning_;
  bool reasoned_ = false;      // there was a block, so that content begins behind it
  bool at_start_ = true;       // of the reasoning, or of the content behind it
  std::string held_newlines_;  // of the reasoning, which may be its last
};

}  // namespace qwench::server
