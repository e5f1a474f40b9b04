#include "text/pre_tokenizer_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/printable.h"
#include "qwench/error.h"

namespace qwench {

SplitBehavior split_behavior(std::string_view name, const std::string& where) {
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: the behavior {} is not supported; supported are Removed, Isolated, "
                          "MergedWithPrevious, MergedWithNext and Contiguous",
                          where, printable(name)));
}

void cut_piece(ByteSpan piece, const std::vector<ByteSpan>& matches, SplitBehavior behavior, bool invert,
               std::vector<ByteSpan>& out) {
  struct Part {
    ByteSpan span;
    bool match;
  };
  std::vector<Part> parts;
  parts.reserve(matches.size() * 2 + 1);
  size_t done = piece.begin;
  for (const ByteSpan m : matches) {
    if (done != m.begin) parts.push_back({{done, m.begin}, invert});
    parts.push_back({m, !invert});
    done = m.end;
  }
  if (done != piece.end) parts.push_back({{done, piece.end}, invert});

  std::vector<ByteSpan> spans;
  spans.reserve(parts.size());
  bool previous_match = false;
  switch (behavior) {
    case SplitBehavior::isolated:
      for (const Part& p : parts) spans.push_back(p.span);
      break;
    case SplitBehavior::removed:
      for (const Part& p : parts) {
        if (!p.match) spans.push_back(p.span);
      }
      break;
    case SplitBehavior::contiguous:
      for (const Part& p : parts) {
        if (p.match == previous_match && !spans.empty())
          spans.back().end = p.span.end;
        else
          spans.push_back(p.span);
        previous_match = p.match;
      }
      break;
    case SplitBehavior::merged_with_previous:
      for (const Part& p : parts) {
        if (p.match && !previous_match && !spans.empty())
          spans.back().end = p.span.end;
        else
          spans.push_back(p.span);
        previous_match = p.match;
      }
      break;
    case SplitBehavior::merged_with_next:
      for (auto p = parts.rbegin(); p != parts.rend(); ++p) {
        if (p->match && !previous_match && !spans.empty())
          spans.back().begin = p->span.begin;
        else
          spans.push_back(p->span);
        previous_match = p->match;
      }
      std::reverse(spans.begin(), spans.end());
      break;
  }
  for (const ByteSpan s : spans) {
    if (s.begin != s.end) out.push_back(s);
  }
}

}  // namespace qwench
