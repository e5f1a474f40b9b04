#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "qwench/engine.h"
#include "server/exchange.h"

namespace qwench::server {

/// Those who watch the engine at work: each gets an event stream that says, several times a second, what has
/// changed. All functions are for one thread.
class Watchers {
 public:
  static constexpr size_t kMost = 64;

  /// False where there are too many.
  bool add(const std::shared_ptr<Exchange>& exchange, Headers headers);
  bool empty() const { return watchers_.empty(); }
  void step(Engine& engine);
  void close();  ///< ends all streams

 private:
  struct Watcher {
    std::shared_ptr<Exchange> exchange;
    std::shared_ptr<std::atomic<bool>> left;
    int64_t last_pass = -1;  // before the first event
    std::string blocks;      // as it was told last
    int quiet = 0;           // steps without an event
  };

  std::vector<Watcher> watchers_;
};

}  // namespace qwench::server
