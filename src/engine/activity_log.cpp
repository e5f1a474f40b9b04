#include "engine/activity_log.h"

#include <algorithm>

namespace qwench {

ActivityLog::ActivityLog(int blocks) : blocks_per_cell_((blocks + kBlockCells - 1) / kBlockCells) {
  blocks_per_cell_ = std::max(blocks_per_cell_, 1);
  shown_.assign(static_cast<size_t>((blocks + blocks_per_cell_ - 1) / blocks_per_cell_), '.');
}

PassRecord ActivityLog::describe(std::span<const ScheduledRows> parts, int64_t number) {
  PassRecord record;
  record.number = number;
  record.sequences = static_cast<int>(parts.size());
  for (const ScheduledRows& part : parts) {
    const bool decodes = part.draws && part.sequence->pending() == 1;
    (decodes ? record.decode_rows : record.prefill_rows) += part.rows;
  }
  return record;
}

void ActivityLog::draw(const BlockPool& blocks) {
  constexpr std::string_view kStates = ".cus";
  wanted_ = false;
  drawn_.clear();
  drawn_shared_ = 0;
  for (int first = 0; first < blocks.size(); first += blocks_per_cell_) {
    size_t state = 0;
    const int end = std::min(first + blocks_per_cell_, blocks.size());
    for (int32_t block = first; block < end; ++block) {
      const int references = blocks.references(block);
      if (references > 1) ++drawn_shared_;
      const size_t own = references > 1 ? 3 : references == 1 ? 2 : blocks.kept(block) ? 1 : 0;
      state = std::max(state, own);
    }
    drawn_ += kStates[state];
  }
}

void ActivityLog::add(const PassRecord& pass) {
  passes_.push_back(pass);
  if (passes_.size() > kRecordedPasses) passes_.pop_front();
}

void ActivityLog::show() {
  if (drawn_.empty()) return;
  shown_.swap(drawn_);
  shown_shared_ = drawn_shared_;
  drawn_.clear();
}

EngineActivity ActivityLog::activity() const {
  return {{passes_.begin(), passes_.end()}, shown_, blocks_per_cell_, shown_shared_};
}

}  // namespace qwench
