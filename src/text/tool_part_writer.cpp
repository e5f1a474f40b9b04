#include "text/tool_part_writer.h"

#include <utility>

#include "text/json_scanner.h"

namespace qwench {

void ToolPartWriter::add(ToolTextPart::Kind kind, int call, std::string_view text) {
  if (kind != ToolTextPart::Kind::call && !parts_.empty() && parts_.back().kind == kind &&
      parts_.back().call == call) {
    parts_.back().text += text;
  } else {
    parts_.push_back({kind, call, std::string(text)});
  }
}

void ToolPartWriter::add_content(std::string_view text) {
  if (!contents_) return;
  for (const char c : text) {
    if (is_json_space(c)) {
      whitespace_ += c;
      continue;
    }
    if (!behind_call_ || has_content_) {
      if (!whitespace_.empty()) add(ToolTextPart::Kind::content, -1, whitespace_);
    }
    whitespace_.clear();
    behind_call_ = false;
    has_content_ = true;
    add(ToolTextPart::Kind::content, -1, std::string_view(&c, 1));
  }
}

void ToolPartWriter::begin_call(std::string_view name) {
  whitespace_.clear();
  behind_call_ = true;
  ++begun_;
  if (dropped()) return;
  open_ = true;
  add(ToolTextPart::Kind::call, calls_++, name);
}

void ToolPartWriter::add_arguments(std::string_view json) {
  if (!dropped() && !json.empty()) add(ToolTextPart::Kind::arguments, calls_ - 1, json);
}

void ToolPartWriter::finish() {
  if (!behind_call_ && !whitespace_.empty()) add(ToolTextPart::Kind::content, -1, whitespace_);
  whitespace_.clear();
}

std::vector<ToolTextPart> ToolPartWriter::take() { return std::exchange(parts_, {}); }

}  // namespace qwench
