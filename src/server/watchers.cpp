#include "server/watchers.h"

#include <atomic>

#include "core/json.h"

namespace qwench::server {
namespace {

constexpr int kQuietSteps = 40;  // then a comment keeps the connection

Json event_of(const EngineStats& stats, const EngineActivity& activity, int64_t after, bool with_blocks) {
  Json event{{"running", stats.running},
             {"waiting", stats.waiting},
             {"kv",
              {{"blocks", stats.kv_blocks_total},
               {"used", stats.kv_blocks_used},
               {"shared", activity.shared_blocks},
               {"cached", stats.kv_blocks_cached},
               {"free", stats.kv_blocks_total - stats.kv_blocks_used - stats.kv_blocks_cached}}},
             {"passes", Json::array()}};
  for (const PassRecord& pass : activity.passes) {
    if (pass.number <= after) continue;
    event["passes"].push_back({{"number", pass.number},
                               {"sequences", pass.sequences},
                               {"prefill", pass.prefill_rows},
                               {"decode", pass.decode_rows},
                               {"ms", pass.seconds * 1e3}});
  }
  if (with_blocks) {
    event["kv"]["cells"] = activity.blocks;
    event["kv"]["blocks_per_cell"] = activity.blocks_per_cell;
  }
  return event;
}

}  // namespace

bool Watchers::add(const std::shared_ptr<Exchange>& exchange, Headers headers) {
  std::erase_if(watchers_, [](const Watcher& watcher) { return watcher.left->load(); });
  if (watchers_.size() >= kMost) return false;
  headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
  headers.emplace_back("Cache-Control", "no-cache");
  headers.emplace_back("X-Accel-Buffering", "no");
  exchange->start_stream(200, std::move(headers));
  const auto left = std::make_shared<std::atomic<bool>>(false);
  exchange->on_disconnect([left] { *left = true; });
  watchers_.push_back({exchange, left, -1, "", 0});
  return true;
}

void Watchers::step(Engine& engine) {
  std::erase_if(watchers_, [](const Watcher& watcher) { return watcher.left->load(); });
  if (watchers_.empty()) return;
  const EngineStats stats = engine.stats();
  const EngineActivity activity = engine.activity();
  const int64_t last = activity.passes.empty() ? 0 : activity.passes.back().number;
  for (Watcher& watcher : watchers_) {
    const bool blocks_changed = watcher.blocks != activity.blocks;
    if (last == watcher.last_pass && !blocks_changed) {
      if (++watcher.quiet >= kQuietSteps) {
        watcher.exchange->write(":\n\n");
        watcher.quiet = 0;
      }
      continue;
    }
    watcher.quiet = 0;
    watcher.exchange->write("data: " + event_of(stats, activity, watcher.last_pass, blocks_changed).dump() +
                            "\n\n");
    watcher.last_pass = last;
    watcher.blocks = activity.blocks;
  }
}

void Watchers::close() {
  for (const Watcher& watcher : watchers_) watcher.exchange->finish();
  watchers_.clear();
}

}  // namespace qwench::server
