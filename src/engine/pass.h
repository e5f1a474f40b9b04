#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "engine/job.h"
#include "engine/loaded_model.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"

namespace qwench {

/// Runs passes of a model: the rows that the scheduler chose, then the logits of those rows that need them,
/// of which completions draw their next tokens and hand them to their sinks. Used by the thread that owns
/// the model.
class Pass {
 public:
  explicit Pass(LoadedModel& model);

  /// Returns how many rows of each part hold tokens of its sequence: all but drafts that were wrong.
  /// Sequences have their new tokens then, and no drafts. Completions that have ended are finished().
  std::span<const int> run(std::span<const ScheduledRows> parts);

  int64_t tokens() const { return tokens_; }  ///< drawn so far
  int64_t drafts() const { return drafts_; }  ///< checked so far
  int64_t draft_hits() const { return draft_hits_; }

 private:
  struct Part {
    Generation* generation;
    int start;           // position of its first row
    int due;             // the row whose logits give the next token; those after it hold drafts
    bool draws;          // the next row's logits give a token
    size_t first_draft;  // in drafted_
    size_t drafts;
  };
  struct LogitRow {
    size_t part;
    int row;  // of the part
  };
  /// A row of logits on the host, of which a completion draws while others draw of theirs.
  struct Draw {
    LogitRow row;
    std::string text;
    std::exception_ptr error;
  };
  /// What one worker needs for it.
  struct Desk {
    std::vector<float> logits;  // [vocab]
    SamplerScratch scratch;
  };

  void forward(std::span<const ScheduledRows> parts);
  void take_hidden_states(std::span<const ScheduledRows> parts);
  void take_drafts(std::span<const ScheduledRows> parts);
  void use(const LogitRow& row, const Matrix& logits, int index);
  void draw_waiting();
  void draw(Generation& generation, const Matrix& logits, int index);
  bool draws_from_top(const Generation& generation) const;
  void look_at_top(const Matrix& logits);
  void deliver(Generation& generation, const std::string& text);
  void check_draft(const LogitRow& row);

  LoadedModel& model_;
  std::vector<SequenceInput> inputs_;
  std::vector<Part> parts_;
  std::vector<LogitRow> rows_;
  std::vector<TokenId> drafted_;
  std::vector<int> good_;
  std::vector<float> hidden_state_;  // [hidden size]
  std::vector<Desk> desks_;          // [threads]
  std::vector<Draw> waiting_;        // at most as many as desks, each of another part
  // Of the slice of logits at hand, the largest of each row.
  int top_ = 0;                    // how many; 0: they were not asked for
  std::vector<TokenId> top_ids_;   // [rows, top_]
  std::vector<float> top_values_;  // [rows, top_]; nothing where top_ is 1
  int64_t tokens_ = 0;
  int64_t drafts_ = 0;
  int64_t draft_hits_ = 0;
};

}  // namespace qwench
