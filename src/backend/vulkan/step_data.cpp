#include "backend/vulkan/step_data.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace qwench {
namespace {

constexpr size_t kHeader = 8;  // where each array begins
constexpr uint64_t kLeastBytes = uint64_t{1} << 20;
constexpr int kManyQueries = 4;
// So few rows do not fill a device: their positions are shared among work groups.
constexpr int kFewRows = 16;

enum Array : size_t { kTokens, kPositions, kTables, kCos, kSin, kPieces, kLogitRows };

/// The words of the buffer, filled from its begin.
class Writer {
 public:
  explicit Writer(std::byte* memory) : words_(reinterpret_cast<uint32_t*>(memory)), at_(kHeader) {}

  void begin(Array array) { words_[array] = static_cast<uint32_t>(at_); }
  void add(uint32_t value) { words_[at_++] = value; }
  template <typename T>
  void add_all(std::span<const T> values) {
    static_assert(sizeof(T) == sizeof(uint32_t));
    if (values.empty()) return;
    std::memcpy(words_ + at_, values.data(), values.size_bytes());
    at_ += values.size();
  }
  uint32_t* words() { return words_; }
  size_t at() const { return at_; }

 private:
  uint32_t* words_;
  size_t at_;
};

}  // namespace

bool StepData::reserve(size_t words) {
  if (buffer_ && buffer_->size() >= words * sizeof(uint32_t)) return false;
  const uint64_t bytes = std::bit_ceil(std::max<uint64_t>(words * sizeof(uint32_t), kLeastBytes));
  buffer_ = device_->make_buffer(bytes, BufferPlace::upload, "the data of a step");
  return true;
}

bool StepData::write(const Batch& batch) {
  const size_t rows = batch.tokens.size();
  size_t table_words = 0;
  bool many = false;
  int longest = 1;
  for (const SequenceRows& sequence : batch.sequences) {
    table_words += sequence.block_table.size();
    many = many || sequence.rows >= kManyQueries;
    longest = std::max(longest, sequence.context);
  }
  // Tokens, positions, tables and logit rows take a word a row each, pieces two at most.
  const bool other =
      reserve(kHeader + 6 * rows + table_words + batch.rope_cos.size() + batch.rope_sin.size());
  attention_.queries = many ? kManyQueries : 1;
  const int parts = (longest + kPart - 1) / kPart;
  const bool few = !many && rows <= kFewRows;
  attention_.parts = few ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(parts))) : 1;

  Writer writer(buffer_->mapped());
  writer.begin(kTokens);
  writer.add_all(batch.tokens);
  writer.begin(kPositions);
  for (const SequenceRows& sequence : batch.sequences) {
    for (int i = 0; i < sequence.rows; ++i)
      writer.add(static_cast<uint32_t>(sequence.context - sequence.rows + i));
  }
  writer.begin(kTables);
  size_t table = writer.at() + rows;
  for (const SequenceRows& sequence : batch.sequences) {
    for (int i = 0; i < sequence.rows; ++i) writer.add(static_cast<uint32_t>(table));
    table += sequence.block_table.size();
  }
  for (const SequenceRows& sequence : batch.sequences) writer.add_all(sequence.block_table);
  writer.begin(kCos);
  writer.add_all(batch.rope_cos);
  writer.begin(kSin);
  writer.add_all(batch.rope_sin);
  writer.begin(kPieces);
  attention_.pieces = 0;
  for (const SequenceRows& sequence : batch.sequences) {
    for (int i = 0; i < sequence.rows; i += attention_.queries) {
      writer.add(static_cast<uint32_t>(sequence.first_row + i));
      writer.add(static_cast<uint32_t>(std::min(attention_.queries, sequence.rows - i)));
      ++attention_.pieces;
    }
  }
  writer.begin(kLogitRows);
  logit_rows_at_ = writer.at();
  writer.add_all(batch.logit_rows);
  return other;
}

void StepData::write_logit_rows(const Batch& batch) {
  if (!batch.logit_rows.empty())
    std::memcpy(buffer_->mapped() + logit_rows_at_ * sizeof(uint32_t), batch.logit_rows.data(),
                batch.logit_rows.size_bytes());
}

}  // namespace qwench
