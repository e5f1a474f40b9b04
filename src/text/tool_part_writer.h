#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tool_calls.h"

namespace qwench {

/// Collects the parts that a text gives: joins neighbours of one kind, and drops whitespace beside calls.
class ToolPartWriter {
 public:
  /// `parallel`: without, calls behind the first are dropped; `contents`: without, all content is.
  ToolPartWriter(bool parallel, bool contents) : parallel_(parallel), contents_(contents) {}

  void add_content(std::string_view text);
  void begin_call(std::string_view name);
  void add_arguments(std::string_view json);
  void end_call() { open_ = false; }
  /// What stands here would have become a call, had the text not been cut.
  void drop_call() { behind_call_ = true; }
  /// The text has ended: whitespace at its end is content, unless it stands behind a call.
  void finish();

  std::vector<ToolTextPart> take();
  int calls() const { return calls_; }
  bool open() const { return open_; }
  bool has_content() const { return has_content_; }  ///< other than whitespace

 private:
  void add(ToolTextPart::Kind kind, int call, std::string_view text);
  bool dropped() const { return !parallel_ && begun_ > 1; }

  bool parallel_;
  bool contents_;
  std::vector<ToolTextPart> parts_;
  std::string whitespace_;  // of the content, before what is not known yet
  bool has_content_ = false;
  bool behind_call_ = false;  // nothing but whitespace since the last call
  bool open_ = false;
  int calls_ = 0;  // given
  int begun_ = 0;  // given or dropped
};

}  // namespace qwench
