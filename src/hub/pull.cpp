#include "hub/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "core/memory.h"
#include "hub/download.h"
#include "hub/file_lock.h"
#include "hub/preview.h"
#include "hub/remote.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

namespace fs = std::filesystem;

// Bytes of weights from which their headers are asked for first, to tell what the model takes in memory.
constexpr uint64_t kWorthPreview = uint64_t{16} << 20;

/// Some threads with a connection each, taking files in order. The first failure stops them all.
class Workers {
 public:
  using Work = std::function<void(HttpClient&, std::stop_token, size_t)>;

  Workers(HttpClient::Options options, int parallel) : options_(std::move(options)), parallel_(parallel) {}

  void run(size_t count, const Work& work, const std::function<void()>& meanwhile) {
    std::stop_source stop;
    const std::stop_callback forward(options_.stop, [&] { stop.request_stop(); });
    std::atomic<size_t> next{0};
    std::atomic<size_t> running{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto loop = [&] {
      try {
        HttpClient::Options own = options_;
        own.stop = stop.get_token();
        HttpClient client(std::move(own));
        for (size_t i = next++; i < count && !stop.stop_requested(); i = next++)
          work(client, stop.get_token(), i);
      } catch (const Stopped&) {
      } catch (...) {
        const std::lock_guard guard(mutex);
        if (!failure) failure = std::current_exception();
        stop.request_stop();
      }
      --running;
    };
    {
      std::vector<std::jthread> threads;
      const size_t size = std::min(count, static_cast<size_t>(std::max(1, parallel_)));
      running = size;
      for (size_t i = 0; i < size; ++i) threads.emplace_back(loop);
      while (running > 0) {
        meanwhile();
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    if (options_.stop.stop_requested()) throw Stopped{};
    if (failure) std::rethrow_exception(failure);
  }

 private:
  HttpClient::Options options_;
  int parallel_;
};

uint64_t free_space(fs::path path) {
  std::error_code error;
  while (!path.empty() && !fs::exists(path, error) && path != path.parent_path()) path = path.parent_path();
  const fs::space_info space = fs::space(path.empty() ? "." : path, error);
  return error ? std::numeric_limits<uint64_t>::max() : space.available;
}

class Pull {
 public:
  Pull(const Environment& environment, const ModelName& model, const PullOptions& options)
      : cache_(fs::absolute(environment.cache)),
        model_(model),
        options_(options),
        remote_(options.source == Source::modelscope ? modelscope(environment, model)
                                                     : hugging_face(environment, model)),
        workers_(client_options(environment), options.parallel) {}

  PullResult run() {
    list();
    identify();
    plan();
    fetch();
    for (size_t i = 0; i < blobs_.size(); ++i)
      cache_.link(model_, listing_.commit, selection_.files[i].path, blobs_[i].etag);
    cache_.set_ref(model_, model_.revision.empty() ? remote_->default_revision() : model_.revision,
                   listing_.commit);
    const fs::path folder = cache_.snapshot(model_, listing_.commit);
    return {selection_.gguf.empty() ? folder : folder / selection_.gguf, listing_.commit};
  }

 private:
  HttpClient::Options client_options(const Environment& environment) const {
    HttpClient::Options options;
    if (options_.source == Source::hugging_face) options.token = environment.token().value_or("");
    options.token_url = environment.endpoint;
    options.stall_seconds = environment.stall_seconds;
    options.stop = options_.stop;
    return options;
  }

  Notice notice() {
    return [this](const std::string& message) {
      const std::lock_guard guard(notice_mutex_);
      if (options_.on_notice) options_.on_notice(message);
    };
  }

  void list() {
    workers_.run(
        1,
        [&](HttpClient& client, const std::stop_token& stop, size_t) {
          listing_ = remote_->list(client, Retry(stop, notice()));
        },
        [] {});
    selection_ = select_files(listing_, model_, options_.filter);
  }

  void identify() {
    blobs_.resize(selection_.files.size());
    workers_.run(
        blobs_.size(),
        [&](HttpClient& client, const std::stop_token& stop, size_t i) {
          blobs_[i] = remote_->identify(client, Retry(stop, notice()), listing_.commit, selection_.files[i]);
        },
        [] {});
  }

  bool is_there(const Blob& blob) const {
    std::error_code error;
    return fs::file_size(cache_.blob(model_, blob.etag), error) == blob.size && !error;
  }

  void plan() {
    PullPlan plan;
    plan.commit = listing_.commit;
    plan.files = blobs_.size();
    std::set<std::string> counted;
    for (size_t i = 0; i < blobs_.size(); ++i) {
      const Blob& blob = blobs_[i];
      plan.bytes += blob.size;
      if (is_weight_file(selection_.files[i].path)) plan.weight_bytes += blob.size;
      if (is_there(blob) || !counted.insert(blob.etag).second) continue;
      const uint64_t unfinished = unfinished_bytes(cache_.blob(model_, blob.etag));
      plan.missing += unfinished < blob.size ? blob.size - unfinished : 0;
      to_fetch_ += blob.size;
    }
    plan.disk_free = free_space(cache_.root());
    plan.memory_free = available_memory();
    const std::unique_ptr<Preview> preview = preview_of(plan);
    if (preview) plan.preview = preview->model();
    if (options_.on_plan) options_.on_plan(plan);
    if (plan.missing > plan.disk_free) {
      throw Error(
          ErrorKind::io,
          fmt::format(
              "{}: {} bytes are to be fetched, but {} has only {} free; make room, or set HF_HUB_CACHE "
              "to a larger disk",
              model_.text(), plan.missing, cache_.root().string(), plan.disk_free));
    }
  }

  std::unique_ptr<Preview> preview_of(const PullPlan& plan) {
    std::unique_ptr<Preview> preview;
    if (!plan.needs_download() || plan.missing > plan.disk_free || plan.weight_bytes < kWorthPreview)
      return preview;
    workers_.run(
        1,
        [&](HttpClient& client, const std::stop_token&, size_t) {
          try {
            preview = std::make_unique<Preview>(client, *remote_, listing_.commit, selection_, blobs_);
          } catch (const Error&) {
            // The pull itself goes on, and says what is wrong where that lasts.
          }
        },
        [] {});
    return preview;
  }

  void fetch() {
    std::error_code error;
    const fs::path folder = cache_.blob(model_, "x").parent_path();
    fs::create_directories(folder, error);
    if (error)
      throw Error(ErrorKind::io, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
    workers_.run(
        blobs_.size(),
        [&](HttpClient& client, const std::stop_token& stop, size_t i) { fetch_one(client, stop, i); },
        [&] {
          const int64_t received = std::max<int64_t>(0, received_);
          if (options_.on_progress) options_.on_progress({to_fetch_, static_cast<uint64_t>(received)});
        });
  }

  void fetch_one(HttpClient& client, const std::stop_token& stop, size_t i) {
    const Blob& blob = blobs_[i];
    const std::string& path = selection_.files[i].path;
    if (is_there(blob)) return;
    const FileLock lock = wait_for_lock(blob, path, stop);
    if (is_there(blob)) return;  // another pull brought it
    if (blob.sha256.empty() && blob.git_sha1.empty())
      notice()(fmt::format("{}: the server says no checksum of it; only its length is checked", path));
    download({*remote_, client, received_, stop, notice()}, remote_->file_url(listing_.commit, path), blob,
             path, cache_.blob(model_, blob.etag));
  }

  FileLock wait_for_lock(const Blob& blob, const std::string& path, const std::stop_token& stop) {
    for (bool told = false;; told = true) {
      if (std::optional<FileLock> lock = FileLock::try_acquire(cache_.lock(model_, blob.etag)))
        return std::move(*lock);
      if (!told) notice()(fmt::format("{}: another program is fetching it; waiting for that", path));
      sleep_for(0.1, stop);
    }
  }

  Cache cache_;
  ModelName model_;
  const PullOptions& options_;
  std::unique_ptr<Remote> remote_;
  Workers workers_;
  Listing listing_;
  Selection selection_;
  std::vector<Blob> blobs_;  // one for each file of the selection
  uint64_t to_fetch_ = 0;
  std::atomic<int64_t> received_{0};
  std::mutex notice_mutex_;
};

}  // namespace

PullResult pull(const Environment& environment, const ModelName& model, const PullOptions& options) {
  if (environment.offline) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: HF_HUB_OFFLINE forbids the network; unset it to pull", model.text()));
  }
  return Pull(environment, model, options).run();
}

}  // namespace qwench::hub
