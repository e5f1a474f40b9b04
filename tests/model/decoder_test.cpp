// The decoder against what the official implementation computed on the tiny checkpoints, in f32 arithmetic on
// the stored weights. Tolerances are those that tests/data/models/README.md advises.
#include "model/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <tuple>

#include "backend/cpu/cpu_backend.h"
#include "checkpoint/expected_tensors.h"
#include "core/thread_pool.h"
#include "golden_model.h"

namespace qwench {
namespace {

using test::GoldenModel;

constexpr int kMaxTokens = 160;
constexpr int kBlocks = 64;
constexpr double kLogitTolerance = 2e-4;

std::vector<float> values_of(Backend& backend, const Matrix& matrix) {
  std::vector<float> values(static_cast<size_t>(matrix.rows) * static_cast<size_t>(matrix.cols));
  for (int row = 0; row < matrix.rows; ++row) {
    backend.read_row(
        matrix, row,
        std::span(values).subspan(static_cast<size_t>(row * matrix.cols), static_cast<size_t>(matrix.cols)));
  }
  return values;
}

// The largest |got - want| beyond what f32 arithmetic may differ by; 0 or less is a match.
double excess(const std::vector<float>& got, const std::vector<float>& want, double absolute,
              double relative) {
  if (got.size() != want.size()) return INFINITY;
  double largest = 0;
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(want[i])));
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    worst = std::isfinite(difference) ? std::max(worst, difference) : INFINITY;
  }
  return worst - (absolute + relative * largest);
}

class Model {
 public:
  Model(const GoldenModel& golden, const std::string& config_file, std::optional<DType> dtype,
        int threads = 2)
      : pool_(threads), backend_(make_cpu_backend(pool_)), checkpoint_(Checkpoint::open(golden.folder())) {
    check_tensors(*checkpoint_);
    config_ = ModelConfig::from_json(parse_json(read_text_file(golden.folder() / config_file), config_file),
                                     config_file);
    decoder_.emplace(config_, DecoderWeights::load(*checkpoint_, *backend_, dtype), *backend_, kMaxTokens,
                     kMaxTokens);
    cache_ = backend_->make_kv_cache(DType::f32, config_.num_layers, kBlocks, config_.num_kv_heads,
                                     config_.head_dim);
  }

  Backend& backend() { return *backend_; }
  Decoder& decoder() { return *decoder_; }
  const ModelConfig& config() const { return config_; }

  // Logits [tokens, vocab] of ids[start..], whose earlier positions are in the cache already.
  std::vector<float> forward(std::span<const TokenId> ids, int start, int prompt_length,
                             std::span<const int32_t> table) {
    const SequenceInput input{
        ids.subspan(static_cast<size_t>(start)), start, prompt_length, table, true, true};
    decoder_->forward(std::span(&input, 1), *cache_);
    return values_of(*backend_, decoder_->logits(0, decoder_->logit_rows()));
  }
  std::vector<std::vector<float>> forward_together(std::span<const SequenceInput> inputs) {
    decoder_->forward(inputs, *cache_);
    const std::vector<float> all = values_of(*backend_, decoder_->logits(0, decoder_->logit_rows()));
    std::vector<std::vector<float>> parts;
    size_t at = 0;
    for (const SequenceInput& input : inputs) {
      const size_t count = input.tokens.size() * static_cast<size_t>(config_.vocab_size);
      parts.emplace_back(all.begin() + static_cast<ptrdiff_t>(at),
                         all.begin() + static_cast<ptrdiff_t>(at + count));
      at += count;
    }
    return parts;
  }

 private:
  ThreadPool pool_;
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  ModelConfig config_;
  std::optional<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
};

// Blocks out of order, so that a mistake in paging shows.
std::vector<int32_t> block_table(int first = 0) {
  std::vector<int32_t> table(kMaxTokens / kBlockSize + 1);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = first + static_cast<int32_t>((i * 7 + 3) % table.size());
  return table;
}

std::vector<TokenId> ids_of(const Json& json) { return json.get<std::vector<TokenId>>(); }

using Variant = std::tuple<std::string, std::string, std::string>;  // model, config file, kept dtype

class DecoderGoldens : public testing::TestWithParam<Variant> {
 protected:
  static std::optional<DType> dtype() {
    return std::get<2>(GetParam()) == "stored" ? std::nullopt : dtype_from_name(std::get<2>(GetParam()));
  }
};

TEST_P(DecoderGoldens, LogitsAndHiddenStatesEqualTheOfficialImplementation) {
  const GoldenModel golden(std::get<0>(GetParam()));
  Model model(golden, std::get<1>(GetParam()), dtype());
  const std::vector<int32_t> table = block_table();
  const Json& prompts = golden.json()["prompts"];
  int compared = 0;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const std::string prefix = fmt::format("p{}.", p);
    model.decoder().set_probe([&](std::string_view name, int layer, const Matrix& value) {
      std::string key;
      if (name == "hidden") {
        key = fmt::format("{}hidden.{}", prefix, layer);
      } else if (name == "norm") {
        key = prefix + "hidden.norm";
      } else if (layer == 0) {
        key = fmt::format("{}l0.{}", prefix, name);
      }
      if (key.empty() || !golden.has(key)) return;
      EXPECT_LE(excess(values_of(model.backend(), value), golden.tensor(key), 1e-4, 1e-5), 0) << key;
      ++compared;
    });
    const std::vector<TokenId> ids = ids_of(prompts[p]["ids"]);
    const std::vector<float> logits = model.forward(ids, 0, static_cast<int>(ids.size()), table);
    EXPECT_LE(excess(logits, golden.tensor(prefix + "logits"), kLogitTolerance, 0), 0) << prefix << "logits";
    ++compared;
  }
  EXPECT_GE(compared, 5 + 2 * (model.config().num_layers + 2));
  std::printf("model goldens: %s (%s, weights %s): %d tensors compared\n", std::get<0>(GetParam()).c_str(),
              std::get<1>(GetParam()).c_str(), std::get<2>(GetParam()).c_str(), compared);
}

TEST_P(DecoderGoldens, GreedyContinuationsEqualTheOfficialImplementation) {
  const GoldenModel golden(std::get<0>(GetParam()));
  Model model(golden, std::get<1>(GetParam()), dtype());
  const std::vector<int32_t> table = block_table();
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  for (const Json& prompt : golden.json()["prompts"]) {
    std::vector<TokenId> ids = ids_of(prompt["ids"]);
    const int prompt_length = static_cast<int>(ids.size());
    const std::vector<TokenId> greedy = ids_of(prompt["greedy"]);
    std::vector<TokenId> got;
    int start = 0;
    while (got.size() < greedy.size()) {
      const std::vector<float> logits = model.forward(ids, start, prompt_length, table);
      const auto last = logits.end() - static_cast<ptrdiff_t>(vocab);
      got.push_back(static_cast<TokenId>(std::max_element(last, logits.end()) - last));
      start = static_cast<int>(ids.size());
      ids.push_back(got.back());
    }
    EXPECT_EQ(got, greedy) << "prompt of " << prompt_length;
  }
}

TEST_P(DecoderGoldens, PerplexityEqualsTheOfficialImplementation) {
  const GoldenModel golden(std::get<0>(GetParam()));
  Model model(golden, std::get<1>(GetParam()), dtype());
  const std::vector<TokenId> ids = ids_of(golden.json()["perplexity"]["ids"]);
  const std::vector<float> logits = model.forward(ids, 0, static_cast<int>(ids.size()), block_table());
  const auto vocab = static_cast<size_t>(model.config().vocab_size);
  double nll = 0;
  for (size_t t = 0; t + 1 < ids.size(); ++t) {
    const std::span row = std::span(logits).subspan(t * vocab, vocab);
    const double top = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float x : row) sum += std::exp(x - top);
    nll += std::log(sum) + top - row[static_cast<size_t>(ids[t + 1])];
  }
  EXPECT_NEAR(nll / static_cast<double>(ids.size() - 1),
              golden.json()["perplexity"]["mean_nll"].get<double>(), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(AllDenseModels, DecoderGoldens,
                         testing::Combine(testing::ValuesIn(test::dense_golden_models()),
                                          testing::Values("config.json", "config.v5.json"),
                                          testing::Values("stored", "f32")),
                         [](const auto& variant) {
                           std::string name = std::get<0>(variant.param) + "_" + std::get<1>(variant.param) +
                                              "_" + std::get<2>(variant.param);
                           for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

class DecoderInvariance : public testing::TestWithParam<std::string> {};

TEST_P(DecoderInvariance, ChunksCompanyAndThreadsChangeNoBit) {
  const GoldenModel golden(GetParam());
  const Json& prompts = golden.json()["prompts"];
  const std::vector<TokenId> ids = ids_of(prompts[prompts.size() - 1]["ids"]);
  const std::vector<TokenId> other = ids_of(prompts[2]["ids"]);
  const int length = static_cast<int>(ids.size());
  const std::vector<int32_t> table = block_table();
  const std::vector<int32_t> other_table = block_table(20);
  ASSERT_GT(length, 48);

  Model alone(golden, "config.json", std::nullopt, 1);
  const std::vector<float> whole = alone.forward(ids, 0, length, table);
  const std::vector<float> other_whole = alone.forward(other, 0, static_cast<int>(other.size()), other_table);

  for (const int threads : {1, 2, 3}) {
    Model model(golden, "config.json", std::nullopt, threads);
    for (const int chunk : {1, 5, 16, 47}) {
      std::vector<float> pieces;
      for (int start = 0; start < length; start += chunk) {
        const std::span part = std::span(ids).first(static_cast<size_t>(std::min(start + chunk, length)));
        const std::vector<float> logits = model.forward(part, start, length, table);
        pieces.insert(pieces.end(), logits.begin(), logits.end());
      }
      EXPECT_EQ(pieces, whole) << "chunks of " << chunk << ", " << threads << " threads";
    }
    const std::array inputs{
        SequenceInput{other, 0, static_cast<int>(other.size()), other_table, true, true},
        SequenceInput{ids, 0, length, table, true, true},
    };
    const auto together = model.forward_together(inputs);
    EXPECT_EQ(together[0], other_whole) << threads << " threads";
    EXPECT_EQ(together[1], whole) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(AllDenseModels, DecoderInvariance, testing::ValuesIn(test::dense_golden_models()),
                         [](const auto& variant) {
                           std::string name = variant.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace qwench
