// Ten thousand random schedules without a model, against a plain model of the cache: what each cell of each
// block holds, written down in full.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <memory>
#include <random>
#include <set>

#include "engine/prefix_cache.h"
#include "engine/scheduler.h"
#include "sanitized.h"

namespace qwench {
namespace {

constexpr int kSchedules = test::kSanitized ? 2'000 : 10'000;
constexpr int kLongest = 80;

/// Gives every list of tokens a number, as the cell of its last token would depend on all of them.
class Beginnings {
 public:
  int number(int before, TokenId token) {
    const auto [place, added] = numbers_.try_emplace({before, token}, static_cast<int>(numbers_.size()) + 1);
    return place->second;
  }
  std::vector<int> numbers(const std::vector<TokenId>& ids, int salt) {
    std::vector<int> list;
    for (const TokenId id : ids) list.push_back(number(list.empty() ? -salt : list.back(), id));
    return list;
  }

 private:
  std::map<std::pair<int, TokenId>, int> numbers_;
};

struct Request {
  Sequence sequence;
  int goal = 0;
  int completions = 1;
  bool arrived = false;
  bool left = false;
  std::vector<std::unique_ptr<Request>> children;
};

struct Tally {
  int64_t passes = 0, preemptions = 0, hits = 0, copies = 0, forks = 0, cancelled = 0, finished = 0;
  int64_t drafts = 0, draft_hits = 0, readmitted_with_hits = 0;
};

uint64_t forgetful_hash(uint64_t, std::span<const TokenId> tokens) {
  return static_cast<uint64_t>(tokens[0] + 2 * tokens[1]);
}

class Simulation {
 public:
  Simulation(uint32_t seed, Tally& tally)
      : random_(seed),
        tally_(tally),
        pool_(pick(kLongest / kBlockSize, 14)),
        prefixes_(pool_, seed % 7 == 3 ? forgetful_hash : PrefixCache::chain_hash),
        scheduler_(pool_, pick(1, 6), pick(1, 40), &prefixes_),
        cells_(static_cast<size_t>(pool_.size())) {
    const int count = pick(2, 7);
    const std::vector<TokenId> common = tokens(pick(0, 48));
    for (int i = 0; i < count; ++i) {
      auto request = std::make_unique<Request>();
      Sequence& sequence = request->sequence;
      if (pick(0, 3) > 0) sequence.ids = common;
      const std::vector<TokenId> own = tokens(pick(sequence.ids.empty() ? 1 : 0, 12));
      sequence.ids.insert(sequence.ids.end(), own.begin(), own.end());
      sequence.prompt_length = sequence.length();
      sequence.shares = pick(0, 9) > 0;
      sequence.whole = pick(0, 9) == 0;
      sequence.salt = pick(0, 9) == 0 ? 1 : 0;
      request->goal = std::min(kLongest, sequence.length() + pick(1, 25));
      request->completions = pick(0, 3) == 0 ? pick(2, 4) : 1;
      requests_.push_back(std::move(request));
    }
  }

  void run() {
    for (int passes = 0; !all_left(); ++passes) {
      ASSERT_LT(passes, 5000) << "it does not end";
      for (const auto& request : requests_) {
        if (!request->arrived && pick(0, 2) == 0) arrive(*request);
      }
      if (pick(0, 30) == 0) cancel_one();
      propose_drafts();
      pass();
      if (testing::Test::HasFatalFailure()) return;
    }
    EXPECT_EQ(pool_.available(), pool_.size()) << "blocks are lost";
    EXPECT_TRUE(scheduler_.empty());
    tally_.preemptions += scheduler_.counts().preemptions;
    tally_.hits += scheduler_.counts().prefix_hits;
  }

 private:
  int pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1));
  }
  std::vector<TokenId> tokens(int count) {
    std::vector<TokenId> ids;
    for (int i = 0; i < count; ++i) ids.push_back(pick(0, 9) == 0 ? 2 : 1);
    return ids;
  }
  bool all_left() const {
    return std::all_of(requests_.begin(), requests_.end(), [](const auto& r) { return r->left; });
  }

  void arrive(Request& request) {
    request.arrived = true;
    scheduler_.add(request.sequence);
  }
  void leave(Request& request) {
    if (request.left) return;
    request.left = true;
    scheduler_.remove(request.sequence);
  }
  void cancel_one() {
    Request& request = *requests_[static_cast<size_t>(pick(0, static_cast<int>(requests_.size()) - 1))];
    if (request.left) return;
    request.arrived = true;
    ++tally_.cancelled;
    leave(request);
  }
  void propose_drafts() {
    for (Sequence* sequence : scheduler_.running()) {
      if (sequence->pending() != 1 || sequence->drafted > 0 || pick(0, 2) > 0) continue;
      const int most = request_of(*sequence).goal - sequence->length() - 1;
      sequence->drafted = std::clamp(pick(0, 6), 0, std::max(0, most));
      const std::vector<TokenId> drafts = tokens(sequence->drafted);
      sequence->ids.insert(sequence->ids.end(), drafts.begin(), drafts.end());
    }
  }
  Request& request_of(const Sequence& sequence) {
    for (const auto& request : requests_) {
      if (&request->sequence == &sequence) return *request;
    }
    throw std::logic_error("an unknown sequence runs");
  }
  int salt_of(const Sequence& sequence) const { return static_cast<int>(sequence.salt); }

  /// How much of a sequence lies in kept blocks, by looking at all of them.
  int cached(const Sequence& sequence) {
    if (!sequence.shares || sequence.whole) return 0;
    std::set<int> kept;
    for (int32_t block = 0; block < pool_.size(); ++block) {
      if (pool_.kept(block)) kept.insert(cells_[static_cast<size_t>(block)].back());
    }
    const std::vector<int> numbers = beginnings_.numbers(sequence.ids, salt_of(sequence));
    int positions = 0;
    while (positions + kBlockSize <= sequence.length() - 1 &&
           kept.contains(numbers[static_cast<size_t>(positions + kBlockSize - 1)])) {
      positions += kBlockSize;
    }
    return positions;
  }

  void pass() {
    std::map<const Sequence*, int> joining;
    for (const auto& request : requests_) {
      if (request->arrived && !request->left && request->sequence.cached_tokens < 0)
        joining[&request->sequence] = cached(request->sequence);
    }
    const int64_t hits = scheduler_.counts().prefix_hits;
    const auto parts = scheduler_.schedule();
    ASSERT_EQ(parts.empty(), scheduler_.empty());
    for (const auto& [sequence, positions] : joining) {
      if (sequence->cached_tokens < 0) continue;
      ASSERT_EQ(sequence->cached_tokens, std::min(positions, sequence->prompt_length));
    }
    if (joining.empty() && scheduler_.counts().prefix_hits > hits) ++tally_.readmitted_with_hits;
    ++tally_.passes;
    for (const ScheduledRows& part : parts) {
      if (part.copy_from < 0) continue;
      cells_[static_cast<size_t>(part.copy_to)] = cells_[static_cast<size_t>(part.copy_from)];
      ++tally_.copies;
    }
    for (const ScheduledRows& part : parts) {
      const Sequence& sequence = *part.sequence;
      const std::vector<int> numbers = beginnings_.numbers(sequence.ids, salt_of(sequence));
      for (int p = sequence.computed; p < sequence.computed + part.rows; ++p)
        cell(sequence, p) = numbers[static_cast<size_t>(p)];
    }
    for (const ScheduledRows& part : parts) {
      const Sequence& sequence = *part.sequence;
      const std::vector<int> numbers = beginnings_.numbers(sequence.ids, salt_of(sequence));
      for (int p = 0; p < sequence.computed + part.rows; ++p)
        ASSERT_EQ(cell(sequence, p), numbers[static_cast<size_t>(p)]) << "position " << p;
    }
    draw({parts.begin(), parts.end()});
    ASSERT_NO_THROW(scheduler_.check());
  }

  int& cell(const Sequence& sequence, int position) {
    const int32_t block = sequence.block_table.at(static_cast<size_t>(position / kBlockSize));
    return cells_[static_cast<size_t>(block)][static_cast<size_t>(position % kBlockSize)];
  }

  void draw(const std::vector<ScheduledRows>& parts) {
    for (const ScheduledRows& part : parts) {
      Sequence& sequence = *part.sequence;
      const std::vector<TokenId> drafts(sequence.ids.end() - sequence.drafted, sequence.ids.end());
      int good = part.rows - sequence.drafted;
      sequence.drop_drafts();
      const bool first = sequence.length() == sequence.prompt_length;
      if (part.draws) {
        sequence.whole = false;
        size_t checked = 0;
        while (true) {
          sequence.ids.push_back(pick(0, 9) == 0 ? 2 : 1);
          if (checked >= drafts.size() || sequence.ids.back() != drafts[checked]) break;
          ++checked;
          ++good;
        }
        tally_.drafts += static_cast<int64_t>(drafts.size());
        tally_.draft_hits += static_cast<int64_t>(checked);
      }
      scheduler_.commit(sequence, good);
      Request& request = request_of(sequence);
      if (part.draws && first) fork(request);
      if (sequence.length() >= request.goal) {
        ++tally_.finished;
        leave(request);
      }
    }
  }

  void fork(Request& parent) {
    for (int i = 1; i < parent.completions; ++i) {
      auto child = std::make_unique<Request>();
      child->arrived = true;
      child->goal = parent.goal;
      Sequence& sequence = child->sequence;
      sequence.ids = parent.sequence.ids;
      sequence.ids.back() = pick(1, 2);
      sequence.prompt_length = parent.sequence.prompt_length;
      sequence.shares = parent.sequence.shares;
      sequence.salt = parent.sequence.salt;
      sequence.cached_tokens = parent.sequence.cached_tokens;
      scheduler_.fork(parent.sequence, sequence);
      requests_.push_back(std::move(child));
      ++tally_.forks;
    }
    parent.completions = 1;
  }

  std::mt19937 random_;
  Tally& tally_;
  BlockPool pool_;
  PrefixCache prefixes_;
  Scheduler scheduler_;
  std::vector<std::array<int, kBlockSize>> cells_;  // [blocks]: the number of the beginning that ends there
  Beginnings beginnings_;
  std::vector<std::unique_ptr<Request>> requests_;
};

TEST(Schedules, EveryCellHoldsWhatItsSequenceNeedsAndEveryBlockComesBack) {
  Tally tally;
  for (uint32_t seed = 0; seed < kSchedules; ++seed) {
    Simulation simulation(seed, tally);
    simulation.run();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  std::printf(
      "schedules: %d, passes %ld, completions %ld, cancelled %ld, preemptions %ld, forks %ld, "
      "copies %ld, tokens found %ld, drafts %ld, right %ld\n",
      kSchedules, tally.passes, tally.finished, tally.cancelled, tally.preemptions, tally.forks, tally.copies,
      tally.hits, tally.drafts, tally.draft_hits);
  EXPECT_GT(tally.preemptions, kSchedules / 10);
  EXPECT_GT(tally.hits, kSchedules);
  EXPECT_GT(tally.copies, kSchedules / 10);
  EXPECT_GT(tally.forks, kSchedules / 10);
  EXPECT_GT(tally.cancelled, kSchedules / 10);
  EXPECT_GT(tally.draft_hits, kSchedules / 10);
  EXPECT_GT(tally.readmitted_with_hits, kSchedules / 100) << "after a preemption, too, the cache is used";
}

}  // namespace
}  // namespace qwench
