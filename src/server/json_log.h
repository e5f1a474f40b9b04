#pragma once

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "core/json.h"

namespace qwench::server {

/// A log of JSON objects, one a line: {"time", "level", "event", ...}. Lines are written by a thread of its
/// own: where the reader of the log stands still, lines are dropped and counted, and nothing waits.
class JsonLog {
 public:
  explicit JsonLog(std::FILE* out);
  ~JsonLog();  ///< writes what is left
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  /// From any thread. `fields` is an object.
  void write(const char* level, const char* event, const Json& fields);
  void info(const char* event, const Json& fields = Json::object()) { write("info", event, fields); }
  void warning(const char* event, const Json& fields = Json::object()) { write("warning", event, fields); }
  void error(const char* event, const Json& fields = Json::object()) { write("error", event, fields); }

 private:
  void run();

  std::FILE* out_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::string> lines_;
  size_t dropped_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace qwench::server
