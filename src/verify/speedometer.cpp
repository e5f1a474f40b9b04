#include "verify/speedometer.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>

namespace qwench {
namespace {

// Rows of random numbers that keys and values are taken from.
constexpr int kTableRows = 61;
constexpr int kRowsAPass = 512;

int blocks_for(int positions) { return (positions + kBlockSize - 1) / kBlockSize; }

}  // namespace

Speedometer::Speedometer(Subject& subject) : subject_(subject) {}

SubjectOptions Speedometer::room_for(SubjectOptions options, const std::vector<SpeedCase>& cases) {
  int positions = 1;
  int64_t blocks = 1;
  options.max_rows = 1;
  for (const SpeedCase& test : cases) {
    positions = std::max(positions, test.positions());
    blocks = std::max(blocks, int64_t{test.sequences} * blocks_for(test.positions()));
    options.max_rows = std::max(options.max_rows, std::min(kRowsAPass, test.sequences * test.rows));
  }
  options.max_rows = std::max(options.max_rows, std::min(kRowsAPass, positions));
  options.positions = positions;
  options.sequences = static_cast<int>((blocks + blocks_for(positions) - 1) / blocks_for(positions));
  return options;
}

std::vector<int32_t> Speedometer::blocks_of(const SpeedCase& test, int sequence) const {
  const int each = blocks_for(test.positions());
  std::vector<int32_t> blocks(static_cast<size_t>(each));
  std::iota(blocks.begin(), blocks.end(), sequence * each);
  return blocks;
}

void Speedometer::prepare(const SpeedCase& test) {
  if (test.depth == 0) return;
  const ModelConfig& model = subject_.config();
  Backend& backend = subject_.backend();
  const int width = model.num_kv_heads * model.head_dim;
  std::vector<float> numbers(static_cast<size_t>(kTableRows) * static_cast<size_t>(width));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (float& number : numbers) number = normal(generator);
  const auto table = backend.load(
      {"random", DType::f32, {kTableRows, width}, std::as_bytes(std::span(numbers))}, DType::f32);
  const auto keys = backend.allocate(kRowsAPass, width);
  const auto values = backend.allocate(kRowsAPass, width);
  for (int sequence = 0; sequence < test.sequences; ++sequence) {
    const std::vector<int32_t> blocks = blocks_of(test, sequence);
    for (int first = 0; first < test.depth; first += kRowsAPass) {
      const int rows = std::min(kRowsAPass, test.depth - first);
      const SequenceRows all{0, rows, first + rows, blocks};
      std::vector<TokenId> of_key;
      std::vector<TokenId> of_value;
      for (int i = 0; i < rows; ++i) {
        of_key.push_back((first + i) % kTableRows);
        of_value.push_back((first + i + sequence + 7) % kTableRows);
      }
      keys->rows = values->rows = rows;
      Batch batch;
      batch.sequences = std::span(&all, 1);
      batch.tokens = of_value;
      backend.begin(batch);
      backend.embed(*table, *values);
      Batch of_keys = batch;
      of_keys.tokens = of_key;
      backend.begin(of_keys);
      backend.embed(*table, *keys);
      for (int layer = 0; layer < model.num_layers; ++layer)
        backend.store_kv(subject_.cache(), layer, *keys, *values);
    }
  }
}

double Speedometer::seconds(const SpeedCase& test) {
  std::vector<std::vector<int32_t>> tables;
  tables.reserve(static_cast<size_t>(test.sequences));
  for (int i = 0; i < test.sequences; ++i) tables.push_back(blocks_of(test, i));
  ids_.resize(static_cast<size_t>(test.rows));
  for (size_t i = 0; i < ids_.size(); ++i) ids_[i] = static_cast<TokenId>((i * 7919 + 13) % subject_.vocab());
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < test.steps; ++step) pass(test, test.depth + step * test.rows, tables);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Speedometer::pass(const SpeedCase& test, int start, const std::vector<std::vector<int32_t>>& tables) {
  Decoder& decoder = subject_.decoder();
  const int chunk = std::max(1, decoder.max_tokens() / test.sequences);
  std::vector<SequenceInput> inputs(tables.size());
  for (int done = 0; done < test.rows; done += chunk) {
    const int count = std::min(chunk, test.rows - done);
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = {
          std::span<const TokenId>(ids_).subspan(static_cast<size_t>(done), static_cast<size_t>(count)),
          start + done,
          test.positions(),
          tables[i],
          false,
          done + count == test.rows};
    }
    subject_.forward(inputs);
    for (int first = 0; first < decoder.logit_rows(); first += decoder.max_logit_rows()) {
      const int slice = std::min(decoder.logit_rows() - first, decoder.max_logit_rows());
      const Matrix& logits = decoder.logits(first, slice);
      drawn_.resize(static_cast<size_t>(slice));
      subject_.backend().argmax(logits, subject_.config().vocab_size, drawn_);
    }
  }
}

SpeedWork Speedometer::work(const SpeedCase& test) const {
  const ModelConfig& model = subject_.config();
  const WeightTotals weights = totals(subject_.decoder().weights());
  const Weight& head = subject_.decoder().weights().head();
  const int64_t head_macs = head.rows * head.cols;
  int64_t layer_macs = weights.parameters - head_macs;
  if (subject_.decoder().weights().lm_head) layer_macs -= head_macs;  // the embedding is looked up only
  const double cell_bytes =
      2.0 * static_cast<double>(bytes_of(subject_.cache().dtype, static_cast<uint64_t>(model.num_kv_heads) *
                                                                     static_cast<uint64_t>(model.head_dim)));
  SpeedWork work;
  double positions_read = 0;  // of all layers, once a pass
  double scores = 0;          // of all layers and query heads
  for (const int window : model.sliding_window) {
    for (int step = 0; step < test.steps; ++step) {
      const int first = test.depth + step * test.rows;
      const auto seen = [&](int position) {
        return window > 0 ? std::min(window, position + 1) : position + 1;
      };
      positions_read += std::min(first + test.rows, seen(first) + test.rows - 1);
      for (int row = 0; row < test.rows; ++row) scores += seen(first + row);
    }
  }
  work.bytes = test.steps * static_cast<double>(weights.bytes_per_token) +
               test.sequences * positions_read * cell_bytes;
  work.operations = 2.0 * static_cast<double>(test.tokens()) * static_cast<double>(layer_macs) +
                    2.0 * test.sequences * test.steps * static_cast<double>(head_macs) +
                    4.0 * test.sequences * scores * model.num_heads * model.head_dim;
  return work;
}

}  // namespace qwench
