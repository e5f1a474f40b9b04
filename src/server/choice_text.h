#pragma once

#include <string>
#include <string_view>

#include "engine/reasoning.h"

namespace qwench::server {

/// What a part of an answer adds to the two texts of a chat message.
struct ChoicePart {
  std::string content;
  std::string reasoning;
};

/// Splits a chat answer into its content and its reasoning, as it appears. Newlines beside the tags belong to
/// neither: the templates of models that reason write them, and drop them from history, the same way. Joined,
/// the parts do not depend on how the text was chopped.
class ChoiceText {
 public:
  /// `reasons`: whether the model does; without, everything is content. `open`: the prompt has opened the
  /// block already.
  ChoiceText(bool reasons, bool open) : reasons_(reasons), splitter_(open), in_reasoning_(open) {}

  ChoicePart push(std::string_view text);
  ChoicePart finish();
  bool in_reasoning() const { return in_reasoning_; }

 private:
  void add(const std::vector<AnswerPart>& parts, ChoicePart& into);

  bool reasons_;
  ReasoningSplitter splitter_;
  bool in_reasoning_;
  bool reasoned_ = false;      // there was a block, so that content begins behind it
  bool at_start_ = true;       // of the reasoning, or of the content behind it
  std::string held_newlines_;  // of the reasoning, which may be its last
};

}  // namespace qwench::server
