#include "engine/engine_loop.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

namespace qwench {
namespace {

/// Signals that are sent to the program go to its own threads while this lives; those that a thread raises by
/// itself stay, as nobody else can take them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, own);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

[[noreturn]] void refuse() {
  throw Error(ErrorKind::shutting_down, "the engine is shutting down and takes no more requests");
}

}  // namespace

EngineLoop::EngineLoop(LoadedModel& model, const EngineOptions& options)
    : model_(model),
      blocks_(model.blocks()),
      prefixes_(blocks_),
      scheduler_(blocks_, model.info().max_batch, model.info().max_batch_tokens, &prefixes_),
      pass_(model),
      most_unfinished_(model.info().max_batch + options.max_queue),
      activity_(blocks_.size()) {
  counts_.kv_blocks_total = blocks_.size();
  published_ = counts_;
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { main(); });
}

EngineLoop::~EngineLoop() { stop(); }

void EngineLoop::submit(std::vector<std::unique_ptr<Job>> jobs, bool bounded) {
  {
    const std::lock_guard lock(mutex_);
    if (refusing_) refuse();
    int completions = 0;
    for (const auto& job : jobs) completions += job->request.n;
    if (bounded && unfinished_ > 0 && completions > most_unfinished_ - unfinished_) {
      ++refused_;
      throw Error(ErrorKind::busy,
                  fmt::format("the queue is full: {} completions run or wait, and no more than "
                              "{} may; try again later",
                              unfinished_, most_unfinished_));
    }
    unfinished_ += completions;
    for (auto& job : jobs) inbox_.push_back(std::move(job));
  }
  work_.notify_one();
}

void EngineLoop::run_alone(const std::function<void(BlockPool&)>& run) {
  Errand errand{run, nullptr};
  std::unique_lock lock(mutex_);
  if (refusing_) refuse();
  errands_.push_back(&errand);
  work_.notify_one();
  done_.wait(lock, [&] { return errand.done; });
  if (errand.error) std::rethrow_exception(errand.error);
}

EngineStats EngineLoop::stats() const {
  const std::lock_guard lock(mutex_);
  EngineStats stats = published_;
  stats.waiting = unfinished_ - stats.running;
  stats.refused_requests = refused_;
  return stats;
}

EngineActivity EngineLoop::activity() {
  activity_.ask();
  EngineActivity activity;
  {
    const std::lock_guard lock(mutex_);
    activity = activity_.activity();
  }
  work_.notify_one();
  return activity;
}

bool EngineLoop::drain(std::optional<std::chrono::nanoseconds> timeout) {
  std::unique_lock lock(mutex_);
  refusing_ = true;
  const auto nothing_left = [&] { return unfinished_ == 0 && errands_.empty(); };
  if (timeout) return done_.wait_for(lock, *timeout, nothing_left);
  done_.wait(lock, nothing_left);
  return true;
}

void EngineLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    refusing_ = true;
    stopping_ = true;
  }
  work_.notify_one();
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void EngineLoop::main() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] {
      return stopping_ || !inbox_.empty() || !errands_.empty() || !jobs_.empty() || activity_.wanted();
    });
    // An errand waits for those that run, and no others join them.
    std::deque<std::unique_ptr<Job>> jobs;
    if (errands_.empty() || stopping_) jobs.swap(inbox_);
    Errand* errand = !errands_.empty() && jobs_.empty() ? errands_.front() : nullptr;
    const bool stopping = stopping_;
    lock.unlock();
    try {
      take(std::move(jobs));
      if (stopping) {
        end_all(FinishReason::cancelled);
      } else {
        end_unwanted();
        if (device_lost_ && !scheduler_.empty()) load_again();
        if (!scheduler_.empty()) pass();
      }
    } catch (const Error& error) {
      device_lost_ = device_lost_ || error.kind() == ErrorKind::device_lost;
      end_all(FinishReason::error, fmt::format("the engine failed: {}", error.what()));
    } catch (const std::exception& error) {
      end_all(FinishReason::error, fmt::format("the engine failed: {}", error.what()));
    }
#ifndef NDEBUG
    scheduler_.check();
#endif
    publish();
    if (errand != nullptr) run(*errand);
    lock.lock();
    if (errand != nullptr) {
      errand->done = true;
      errands_.pop_front();
      done_.notify_all();
    }
    if (stopping && errands_.empty() && inbox_.empty()) return;
  }
}

void EngineLoop::load_again() {
  model_.load_again();
  device_lost_ = false;
  // Nobody holds a block now; those that are kept for prompts to come have lost what they held.
  std::vector<int32_t> all;
  while (blocks_.available() > 0) all.push_back(blocks_.allocate());
  for (const int32_t block : all) blocks_.release(block);
}

void EngineLoop::run(Errand& errand) {
  try {
    if (device_lost_) load_again();
    errand.run(blocks_);
  } catch (const Error& error) {
    device_lost_ = device_lost_ || error.kind() == ErrorKind::device_lost;
    errand.error = std::current_exception();
  } catch (...) {
    errand.error = std::current_exception();
  }
}

void EngineLoop::take(std::deque<std::unique_ptr<Job>> jobs) {
  for (auto& job : jobs) {
    jobs_.push_back(std::move(job));
    Job& taken = *jobs_.back();
    if (taken.generations[0]->finished()) {
      end_finished(taken);
    } else {
      scheduler_.add(taken.generations[0]->sequence());
    }
  }
}

void EngineLoop::end_unwanted() {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& job : jobs_) {
    if (job->unfinished == 0) continue;
    const bool late = job->request.deadline && now >= *job->request.deadline;
    if (!late && !job->sink->cancelled() && !job->stop.stop_requested()) continue;
    for (const auto& generation : job->generations) {
      if (generation && !generation->finished())
        generation->end(late ? FinishReason::deadline : FinishReason::cancelled);
    }
    end_finished(*job);
  }
}

void EngineLoop::pass() {
  if (model_.generation().speculation.draft_tokens > 0) {
    for (Sequence* sequence : scheduler_.running()) generation_of(*sequence).propose_drafts();
  }
  const std::span<const ScheduledRows> parts = scheduler_.schedule();
  for (const ScheduledRows& part : parts) {
    if (part.sequence->index == 0 && !generation_of(*part.sequence).began())
      counts_.prompt_tokens += part.sequence->prompt_length;
  }
  PassRecord record = ActivityLog::describe(parts, counts_.passes + 1);
  const auto begin = std::chrono::steady_clock::now();
  const std::span<const int> rows = pass_.run(parts);
  record.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  passes_done_.push_back(record);
  ++counts_.passes;
  for (size_t i = 0; i < parts.size(); ++i) scheduler_.commit(*parts[i].sequence, rows[i]);
  for (const ScheduledRows& part : parts) {
    Job& job = *part.sequence->job;
    if (!job.forked && (part.draws || generation_of(*part.sequence).finished())) fork(job);
  }
  for (const auto& job : jobs_) end_finished(*job);
}

void EngineLoop::fork(Job& job) {
  job.forked = true;
  Generation& first = *job.generations[0];
  for (size_t i = 1; i < job.generations.size(); ++i) {
    Generation& generation = *job.generations[i];
    if (!generation.began()) generation.follow(first);
    if (!generation.finished()) scheduler_.fork(first.sequence(), generation.sequence());
  }
}

void EngineLoop::end_finished(Job& job) {
  for (auto& generation : job.generations) {
    if (!generation || !generation->finished()) continue;
    scheduler_.remove(generation->sequence());
    const std::string tail = generation->finish_text();
    Result result = generation->take_result();
    ++counts_.finished[static_cast<size_t>(result.finish_reason)];
    job.sink->end(generation->index(), tail, std::move(result));
    generation.reset();
    --job.unfinished;
    ++ended_;
  }
}

void EngineLoop::end_all(FinishReason reason, const std::string& error) {
  for (const auto& job : jobs_) {
    for (const auto& generation : job->generations) {
      if (!generation || generation->finished()) continue;
      if (error.empty()) {
        generation->end(reason);
      } else {
        generation->fail(error);
      }
    }
    end_finished(*job);
  }
}

void EngineLoop::publish() {
  const SchedulerCounts& scheduled = scheduler_.counts();
  counts_.running = static_cast<int>(scheduler_.running().size());
  counts_.kv_blocks_used = blocks_.used();
  counts_.kv_blocks_cached = blocks_.idle();
  counts_.prefix_queries = scheduled.prefix_queries;
  counts_.prefix_hits = scheduled.prefix_hits;
  counts_.preemptions = scheduled.preemptions;
  counts_.generation_tokens = pass_.tokens();
  counts_.draft_tokens = pass_.drafts();
  counts_.draft_hits = pass_.draft_hits();
  if (activity_.wanted()) activity_.draw(blocks_);
  {
    const std::lock_guard lock(mutex_);
    published_ = counts_;
    activity_.show();
    for (const PassRecord& pass : passes_done_) activity_.add(pass);
    passes_done_.clear();
    unfinished_ -= std::exchange(ended_, 0);
    if (unfinished_ == 0) done_.notify_all();
  }
  for (const auto& job : jobs_) job->sink->flush();
  std::erase_if(jobs_, [](const auto& job) { return job->unfinished == 0; });
}

}  // namespace qwench
