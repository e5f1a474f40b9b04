#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "hub/http.h"

namespace qwench::hub {

/// Says in one sentence what goes on, for a person who waits.
using Notice = std::function<void(const std::string&)>;

/// How often something that failed is tried again: five tries without progress, with waits of 0.5, 1, 2 and 4
/// seconds or what the server's Retry-After says, if that is at most two minutes.
class Retry {
 public:
  Retry(std::stop_token stop, Notice notice) : stop_(std::move(stop)), notice_(std::move(notice)) {}

  /// After a transient failure of `what`: false when it is time to give up, else waits and says so. Throws
  /// Stopped.
  bool wait(const std::string& what, const Response& response);
  void progressed() { failures_ = 0; }

 private:
  std::stop_token stop_;
  Notice notice_;
  int failures_ = 0;
};

/// Sleeps, but wakes up to throw Stopped when asked to.
void sleep_for(double seconds, const std::stop_token& stop);

/// What a failed answer says in a few words: "503 Service Unavailable", "connection reset".
std::string reason_of(const Response& response);

}  // namespace qwench::hub
