#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace qwench {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string StopMatcher::push(std::string_view delta, bool may_stop) {
  if (stopped()) return {};
  if (stops_.empty()) return std::string(delta);
  held_ += delta;
  if (!may_stop) immune_ = held_.size();
  const std::string* which = nullptr;
  const size_t stop = find_stop(&which);
  const size_t unfinished = find_unfinished();
  // A stop string that began earlier may still be completed and would then cut the text there.
  if (which != nullptr && stop <= unfinished) {
    matched_ = which;
    return release(stop);
  }
  return release(std::min(unfinished, held_.size()));
}

std::string StopMatcher::finish() {
  if (stopped()) return {};
  const std::string* which = nullptr;
  const size_t stop = find_stop(&which);
  matched_ = which;
  return release(which != nullptr ? stop : held_.size());
}

std::string StopMatcher::release(size_t length) {
  std::string out = held_.substr(0, length);
  if (stopped()) {
    held_.clear();
  } else {
    held_.erase(0, length);
    immune_ -= std::min(immune_, length);
  }
  return out;
}

size_t StopMatcher::find_stop(const std::string** which) const {
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t from = immune_ >= stop.size() ? immune_ - stop.size() + 1 : 0;
    const size_t found = held_.find(stop, from);
    if (found < first) {
      first = found;
      *which = &stop;
    }
  }
  return first;
}

/// Where the leftmost beginning of a stop string that reaches the end of the text starts; npos when there is
/// none.
size_t StopMatcher::find_unfinished() const {
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) {
    for (size_t length = std::min(stop.size() - 1, held_.size()); length > 0; --length) {
      if (held_.compare(held_.size() - length, length, stop, 0, length) == 0) {
        first = std::min(first, held_.size() - length);
        break;
      }
    }
  }
  return first;
}

}  // namespace qwench
