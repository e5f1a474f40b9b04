#include "engine/pass.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>

namespace qwench {

Pass::Pass(LoadedModel& model) : model_(model), desks_(static_cast<size_t>(model.threads().size())) {
  desks_[0].logits.resize(static_cast<size_t>(model.info().vocab_size));
}

std::span<const int> Pass::run(std::span<const ScheduledRows> parts) {
  forward(parts);
  take_hidden_states(parts);
  take_drafts(parts);
  Decoder& decoder = model_.decoder();
  waiting_.clear();  // of a pass that failed
  for (size_t first = 0; first < rows_.size(); first += static_cast<size_t>(decoder.max_logit_rows())) {
    const size_t count = std::min(rows_.size() - first, static_cast<size_t>(decoder.max_logit_rows()));
    const Matrix& logits = decoder.logits(static_cast<int>(first), static_cast<int>(count));
    top_ = 0;
    for (size_t i = 0; i < count; ++i) use(rows_[first + i], logits, static_cast<int>(i));
    draw_waiting();
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    const int drafts = static_cast<int>(parts_[i].drafts);
    const int right = good_[i] - (parts[i].rows - drafts);
    draft_hits_ += right;
    parts_[i].generation->learn_from_drafts(drafts, right);
  }
  return good_;
}

void Pass::forward(std::span<const ScheduledRows> parts) {
  inputs_.clear();
  parts_.clear();
  rows_.clear();
  const auto now = std::chrono::steady_clock::now();
  for (const ScheduledRows& part : parts) {
    const Sequence& sequence = *part.sequence;
    Generation& generation = generation_of(sequence);
    generation.begin_pass(now);
    if (part.copy_from >= 0) model_.backend().copy_block(model_.cache(), part.copy_from, part.copy_to);
    const bool draws = part.draws && generation.next_embedding_row() < 0;
    const bool all = generation.next_prompt_logprob() >= 0 || sequence.drafted > 0;
    inputs_.push_back({std::span(sequence.ids)
                           .subspan(static_cast<size_t>(sequence.computed), static_cast<size_t>(part.rows)),
                       sequence.computed, sequence.prompt_length, sequence.block_table, all, draws});
    for (int row = all ? 0 : part.rows - 1; row < part.rows && (all || draws); ++row)
      rows_.push_back({parts_.size(), row});
    parts_.push_back({&generation, sequence.computed, part.rows - sequence.drafted - 1, draws, 0, 0});
  }
  model_.decoder().forward(inputs_, model_.cache());
}

/// Of prompts whose embedding is wanted; rows that were taken before a preemption come again.
void Pass::take_hidden_states(std::span<const ScheduledRows> parts) {
  int first = 0;  // row of the pass
  for (size_t i = 0; i < parts.size(); first += parts[i].rows, ++i) {
    Generation& generation = *parts_[i].generation;
    for (int next = generation.next_embedding_row(); next >= 0; next = generation.next_embedding_row()) {
      const int row = next - parts_[i].start;
      if (row >= parts[i].rows) break;
      hidden_state_.resize(static_cast<size_t>(model_.info().embedding_size));
      model_.backend().read_row(model_.decoder().final_hidden(), first + row, hidden_state_);
      generation.take_hidden_state(hidden_state_);
    }
  }
}

void Pass::take_drafts(std::span<const ScheduledRows> parts) {
  drafted_.clear();
  good_.clear();
  for (size_t i = 0; i < parts.size(); ++i) {
    Sequence& sequence = *parts[i].sequence;
    parts_[i].first_draft = drafted_.size();
    parts_[i].drafts = static_cast<size_t>(sequence.drafted);
    drafted_.insert(drafted_.end(), sequence.ids.end() - sequence.drafted, sequence.ids.end());
    drafts_ += sequence.drafted;
    good_.push_back(parts[i].rows - sequence.drafted);
    sequence.drop_drafts();
  }
}

void Pass::use(const LogitRow& row, const Matrix& logits, int index) {
  // A part's rows go one after the other: whether a draft's row counts depends on the one before it.
  if (!waiting_.empty() && (waiting_.size() == desks_.size() || waiting_.back().row.part == row.part))
    draw_waiting();
  const Part& part = parts_[row.part];
  Generation& generation = *part.generation;
  if (generation.finished()) return;
  std::vector<float>& host = desks_[waiting_.size()].logits;
  host.resize(static_cast<size_t>(model_.info().vocab_size));
  if (generation.next_prompt_logprob() == part.start + row.row) {
    model_.backend().read_row(logits, index, host);
    generation.take_prompt_logits(host);
    return;
  }
  if (!part.draws || row.row < part.due) return;
  const Job& job = *generation.sequence().job;
  if (job.forked && !generation.takes_argmax() && !draws_from_top(generation)) {
    model_.backend().read_row(logits, index, host);
    waiting_.push_back({row, {}, {}});
    return;
  }
  if (!job.forked) {
    draw_waiting();
    for (size_t i = 1; i < job.generations.size(); ++i) {
      job.generations[i]->follow(generation);
      draw(*job.generations[i], logits, index);
    }
  }
  draw(generation, logits, index);
  check_draft(row);
}

/// Sampling reads the whole vocabulary: for many sequences together it is worth all threads.
void Pass::draw_waiting() {
  if (waiting_.empty()) return;
  const auto draw_one = [&](size_t i) {
    try {
      waiting_[i].text =
          parts_[waiting_[i].row.part].generation->take_logits(desks_[i].logits, desks_[i].scratch);
    } catch (...) {
      waiting_[i].error = std::current_exception();
    }
  };
  if (waiting_.size() == 1) {
    draw_one(0);
  } else {
    model_.threads().run([&](int worker, int) {
      if (static_cast<size_t>(worker) < waiting_.size()) draw_one(static_cast<size_t>(worker));
    });
  }
  std::vector<Draw> done;
  done.swap(waiting_);
  for (const Draw& drawn : done) {
    if (drawn.error) std::rethrow_exception(drawn.error);
    deliver(*parts_[drawn.row.part].generation, drawn.text);
    check_draft(drawn.row);
  }
  done.clear();
  waiting_.swap(done);
}

bool Pass::draws_from_top(const Generation& generation) const {
  return model_.backend().rows_are_away() && generation.top_wanted() > 0;
}

/// Asked for once a slice: enough for every completion of the pass that draws from them, in steps of powers
/// of two, so that a device repeats its commands.
void Pass::look_at_top(const Matrix& logits) {
  if (top_ > 0) return;
  const int valid_ids = model_.generation().vocabulary->valid_ids;
  int wanted = 1;
  for (const Part& part : parts_) {
    if (draws_from_top(*part.generation)) wanted = std::max(wanted, part.generation->top_wanted());
  }
  top_ =
      std::min(static_cast<int>(std::bit_ceil(static_cast<unsigned>(wanted))), std::min(valid_ids, kMostTop));
  const auto count = static_cast<size_t>(logits.rows) * static_cast<size_t>(top_);
  top_ids_.resize(count);
  top_values_.resize(count);
  if (top_ == 1) {
    model_.backend().argmax(logits, valid_ids, top_ids_);
  } else {
    model_.backend().top_k(logits, valid_ids, top_, top_ids_, top_values_);
  }
}

void Pass::draw(Generation& generation, const Matrix& logits, int index) {
  Desk& desk = desks_[waiting_.size()];  // the first that holds no row that waits
  const auto first = [&] { return static_cast<size_t>(index) * static_cast<size_t>(top_); };
  if (generation.takes_argmax()) {
    look_at_top(logits);
    return deliver(generation, generation.take_argmax(top_ids_[first()]));
  }
  if (draws_from_top(generation)) {
    look_at_top(logits);
    const TopLogits top{std::span(top_ids_).subspan(first(), static_cast<size_t>(top_)),
                        std::span(top_values_).subspan(first(), static_cast<size_t>(top_))};
    const std::optional<std::string> text = top_ > 1 ? generation.take_top(top, desk.scratch) : std::nullopt;
    if (text) return deliver(generation, *text);
  }
  model_.backend().read_row(logits, index, desk.logits);
  deliver(generation, generation.take_logits(desk.logits, desk.scratch));
}

void Pass::deliver(Generation& generation, const std::string& text) {
  if (generation.failed()) return;
  ++tokens_;
  const Sequence& sequence = generation.sequence();
  sequence.job->sink->token(generation.index(), sequence.ids.back(), text, generation.last_logprob());
}

/// The token just drawn is the draft that the part's next row was computed for, or that row is of no use.
void Pass::check_draft(const LogitRow& row) {
  Part& part = parts_[row.part];
  const auto draft = static_cast<size_t>(row.row - part.due);
  part.draws = draft < part.drafts && !part.generation->finished() &&
               part.generation->sequence().ids.back() == drafted_[part.first_draft + draft];
  if (part.draws) ++good_[row.part];
}

}  // namespace qwench
