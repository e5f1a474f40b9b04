// The decoder on a Vulkan device: the tiny checkpoints beside the official implementation (f32 weights), and
// beside the CPU with the same weights (f16).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "backend/cpu/cpu_backend.h"
#include "backend/vulkan/vulkan_backend.h"
#include "checkpoint/expected_tensors.h"
#include "golden_model.h"
#include "model/decoder.h"
#include "model/device_weights.h"
#include "sanitized.h"
#include "vulkan_test_device.h"

namespace qwench {
namespace {

using test::GoldenModel;

constexpr int kMaxTokens = 160;
constexpr int kBlocks = 64;
constexpr double kF16Tolerance = 5e-3;

/// A decoder on the CPU or on a device.
class Model {
 public:
  Model(const GoldenModel& golden, std::optional<VulkanOptions> vulkan, std::optional<DType> dtype,
        DType cells)
      : pool_(1), checkpoint_(Checkpoint::open(golden.folder())) {
    if (vulkan) {
      vulkan->keeps_f32 = dtype == DType::f32;
      backend_ = make_vulkan_backend(*vulkan, pool_);
    } else {
      backend_ = make_cpu_backend(pool_);
    }
    const ModelConfig& config = checkpoint_->config();
    decoder_.emplace(config, DecoderWeights::load(*checkpoint_, *backend_, dtype), *backend_, kMaxTokens,
                     kMaxTokens);
    cache_ = backend_->make_kv_cache(cells, config.num_layers, kBlocks, config.num_kv_heads, config.head_dim);
  }

  Backend& backend() { return *backend_; }
  Decoder& decoder() { return *decoder_; }
  KvCache& cache() { return *cache_; }
  const ModelConfig& config() const { return checkpoint_->config(); }
  size_t vocab() const { return static_cast<size_t>(config().vocab_size); }

  void forward(std::span<const SequenceInput> inputs) { decoder_->forward(inputs, *cache_); }
  /// Logits [tokens, vocab] of ids[start..].
  std::vector<float> logits(std::span<const TokenId> ids, int start, int length,
                            std::span<const int32_t> table) {
    const SequenceInput input{ids.subspan(static_cast<size_t>(start)), start, length, table, true, true};
    forward(std::span(&input, 1));
    return all_logits();
  }
  std::vector<float> all_logits() {
    const Matrix& matrix = decoder_->logits(0, decoder_->logit_rows());
    std::vector<float> values(static_cast<size_t>(matrix.rows) * vocab());
    for (int row = 0; row < matrix.rows; ++row)
      backend_->read_row(matrix, row, std::span(values).subspan(static_cast<size_t>(row) * vocab(), vocab()));
    return values;
  }
  std::vector<TokenId> greedy(std::vector<TokenId> ids, size_t count, std::span<const int32_t> table) {
    const auto length = static_cast<int>(ids.size());
    int start = 0;
    std::vector<TokenId> got;
    while (got.size() < count) {
      const SequenceInput input{
          std::span(ids).subspan(static_cast<size_t>(start)), start, length, table, false, true};
      start = static_cast<int>(ids.size());
      forward(std::span(&input, 1));
      TokenId best = -1;
      backend_->argmax(decoder_->logits(0, 1), config().vocab_size, std::span(&best, 1));
      got.push_back(best);
      ids.push_back(best);
    }
    return got;
  }

 private:
  ThreadPool pool_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<Backend> backend_;
  std::optional<Decoder> decoder_;
  std::unique_ptr<KvCache> cache_;
};

VulkanOptions on(const DeviceInfo& device) {
  VulkanOptions options;
  options.index = device.index;
  return options;
}

std::vector<int32_t> block_table(int first = 0) {
  std::vector<int32_t> table(kMaxTokens / kBlockSize + 1);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = first + static_cast<int32_t>((i * 7 + 3) % table.size());
  return table;
}

std::vector<TokenId> ids_of(const Json& json) { return json.get<std::vector<TokenId>>(); }

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    worst = std::isfinite(d) ? std::max(worst, d) : INFINITY;
  }
  return worst;
}

class VulkanDecoder : public testing::TestWithParam<std::string> {};

TEST_P(VulkanDecoder, EqualsTheOfficialImplementationInF32AndTheCpuInF16) {
  QWENCH_NEEDS_VULKAN(device);
  const GoldenModel golden(GetParam());
  const std::vector<int32_t> table = block_table();
  Model exact(golden, on(*device), DType::f32, DType::f32);
  Model rounded(golden, on(*device), std::nullopt, DType::f16);
  Model cpu(golden, std::nullopt, DType::f16, DType::f16);
  double worst_f32 = 0;
  double worst_f16 = 0;
  int tokens = 0;
  int equal = 0;
  const Json& prompts = golden.json()["prompts"];
  for (size_t p = 0; p < prompts.size(); ++p) {
    const std::vector<TokenId> ids = ids_of(prompts[p]["ids"]);
    const auto length = static_cast<int>(ids.size());
    const std::string name = fmt::format("p{}.logits", p);
    const double f32 = distance(exact.logits(ids, 0, length, table), golden.tensor(name));
    const double f16 = distance(rounded.logits(ids, 0, length, table), cpu.logits(ids, 0, length, table));
    EXPECT_LE(f32, 2e-4) << name;
    EXPECT_LE(f16, kF16Tolerance) << name;
    worst_f32 = std::max(worst_f32, f32);
    worst_f16 = std::max(worst_f16, f16);
    if (p != 1) continue;  // a step of one token takes a software device as long as a prompt
    const std::vector<TokenId> want = ids_of(prompts[p]["greedy"]);
    EXPECT_EQ(exact.greedy(ids, want.size(), table), want) << "prompt " << p;
    const std::vector<TokenId> of_cpu = cpu.greedy(ids, want.size(), table);
    const std::vector<TokenId> got = rounded.greedy(ids, want.size(), table);
    tokens += static_cast<int>(want.size());
    const auto same = std::mismatch(got.begin(), got.end(), of_cpu.begin()).first - got.begin();
    equal += static_cast<int>(same);
    if (same == static_cast<ptrdiff_t>(want.size())) continue;
    // Where they part, the CPU's two logits are as near as the tolerance.
    std::vector<TokenId> parted = ids;
    parted.insert(parted.end(), of_cpu.begin(), of_cpu.begin() + same);
    const std::vector<float> all = cpu.logits(parted, 0, length, table);
    const auto last = all.end() - static_cast<ptrdiff_t>(cpu.vocab());
    EXPECT_LE(last[of_cpu[static_cast<size_t>(same)]] - last[got[static_cast<size_t>(same)]],
              2 * kF16Tolerance);
  }
  EXPECT_GE(prompts.size(), 3U);
  std::printf(
      "vulkan goldens: %s: f32 %.1e of the official logits, f16 %.1e of the CPU's, %d of %d greedy tokens "
      "equal\n",
      GetParam().c_str(), worst_f32, worst_f16, equal, tokens);
}

class VulkanDecoderInvariance : public testing::TestWithParam<std::string> {};

TEST_P(VulkanDecoderInvariance, ChunksAndCompanyChangeNoBit) {
  QWENCH_NEEDS_VULKAN(device);
  const GoldenModel golden(GetParam());
  const Json& prompts = golden.json()["prompts"];
  std::vector<TokenId> ids = ids_of(prompts[prompts.size() - 1]["ids"]);
  ASSERT_GT(ids.size(), 72U);
  ids.resize(72);
  const std::vector<TokenId> other = ids_of(prompts[2]["ids"]);
  const auto length = static_cast<int>(ids.size());
  const std::vector<int32_t> table = block_table();
  const std::vector<int32_t> other_table = block_table(20);
  Model model(golden, on(*device), std::nullopt, DType::f16);
  const std::vector<float> whole = model.logits(ids, 0, length, table);
  const std::vector<float> other_whole = model.logits(other, 0, static_cast<int>(other.size()), other_table);
  // Steps of one token, of a part of a block, of a block, and of more; few of one, which take as long as the
  // others.
  for (const std::vector<int>& chunks : {std::vector{1, 5, 16, 47}, std::vector{13, 1, 1, 3}}) {
    std::vector<float> pieces;
    size_t next = 0;
    for (int start = 0; start < length;) {
      const int end = std::min(start + chunks[next++ % chunks.size()], length);
      const std::vector<float> logits =
          model.logits(std::span(ids).first(static_cast<size_t>(end)), start, length, table);
      pieces.insert(pieces.end(), logits.begin(), logits.end());
      start = end;
    }
    EXPECT_EQ(pieces, whole) << "chunks of " << testing::PrintToString(chunks);
  }
  const std::array inputs{SequenceInput{other, 0, static_cast<int>(other.size()), other_table, true, true},
                          SequenceInput{ids, 0, length, table, true, true}};
  model.forward(inputs);
  std::vector<float> both = other_whole;
  both.insert(both.end(), whole.begin(), whole.end());
  EXPECT_EQ(model.all_logits(), both);
}

TEST_P(VulkanDecoder, StreamedLayersGiveTheSameBits) {
  QWENCH_NEEDS_VULKAN(device);
  const GoldenModel golden(GetParam());
  const std::vector<TokenId> ids = ids_of(golden.json()["prompts"][1]["ids"]);
  const auto length = static_cast<int>(ids.size());
  const std::vector<int32_t> table = block_table();
  Model resident(golden, on(*device), std::nullopt, DType::f16);
  const std::vector<float> want = resident.logits(ids, 0, length, table);
  const std::vector<TokenId> tokens = resident.greedy(ids, 8, table);
  for (int layers = 0; layers < resident.config().num_layers; ++layers) {
    VulkanOptions options = on(*device);
    options.gpu_layers = layers;
    options.hides_memory = true;
    Model streamed(golden, options, std::nullopt, DType::f16);
    EXPECT_EQ(streamed.logits(ids, 0, length, table), want) << layers << " resident layers";
    EXPECT_EQ(streamed.greedy(ids, 8, table), tokens) << layers << " resident layers";
    EXPECT_GT(streamed.backend().counts().streamed_bytes, 0);
  }
}

// Under sanitizers a few: they see this program's own code, which is the same for all.
std::vector<std::string> models_to_run() {
  std::vector<std::string> models = test::dense_golden_models();
  if (!test::kSanitized) return models;
  std::vector<std::string> some;
  for (size_t i = 0; i < models.size(); i += 4) some.push_back(models[i]);
  return some;
}

std::string name_of(const testing::TestParamInfo<std::string>& variant) {
  std::string name = variant.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(AllDenseModels, VulkanDecoder, testing::ValuesIn(models_to_run()), name_of);

// Those whose steps differ: the others differ in how their weights are stored.
INSTANTIATE_TEST_SUITE_P(Architectures, VulkanDecoderInvariance,
                         testing::Values("qwen3-tiny-f32", "qwen2-tiny-f16", "qwen2-tiny-window",
                                         "llama-tiny-rope3"),
                         name_of);

TEST(VulkanDecoderSteps, AGreedyStepIsOneSubmitAndReadsBackOneIdOfEachSequence) {
  QWENCH_NEEDS_VULKAN(device);
  const GoldenModel golden("qwen3-tiny-bf16-tied");
  Model model(golden, on(*device), std::nullopt, DType::f16);
  const std::vector<int32_t> first = block_table();
  const std::vector<int32_t> second = block_table(20);
  const std::vector<TokenId> ids{5, 6, 7, 8, 9, 10, 11, 12};
  for (int position = 0; position < 8; ++position) {
    const std::span token = std::span(ids).subspan(static_cast<size_t>(position), 1);
    const std::array inputs{SequenceInput{token, position, 8, first, false, true},
                            SequenceInput{token, position, 8, second, false, true}};
    const DeviceCounts before = model.backend().counts();
    model.forward(inputs);
    std::array<TokenId, 2> best{};
    model.backend().argmax(model.decoder().logits(0, 2), model.config().vocab_size, best);
    const DeviceCounts after = model.backend().counts();
    EXPECT_EQ(best[0], best[1]);
    EXPECT_EQ(after.submits - before.submits, 1);
    EXPECT_EQ(after.read_backs - before.read_backs, 1);
    EXPECT_EQ(after.read_back_bytes - before.read_back_bytes, 2 * static_cast<int64_t>(sizeof(TokenId)));
  }
}

TEST(VulkanDecoderSteps, ASampledStepIsOneSubmitAndReadsBackItsLargestLogits) {
  QWENCH_NEEDS_VULKAN(device);
  const GoldenModel golden("qwen3-tiny-bf16-tied");
  Model model(golden, on(*device), std::nullopt, DType::f16);
  const std::vector<int32_t> first = block_table();
  const std::vector<int32_t> second = block_table(20);
  const std::vector<TokenId> ids{5, 6, 7, 8};
  for (int position = 0; position < 4; ++position) {
    const std::span token = std::span(ids).subspan(static_cast<size_t>(position), 1);
    const std::array inputs{SequenceInput{token, position, 4, first, false, true},
                            SequenceInput{token, position, 4, second, false, true}};
    const DeviceCounts before = model.backend().counts();
    model.forward(inputs);
    std::array<TokenId, 42> top{};
    std::array<float, 42> values{};
    model.backend().top_k(model.decoder().logits(0, 2), model.config().vocab_size, 21, top, values);
    const DeviceCounts after = model.backend().counts();
    EXPECT_TRUE(std::equal(top.begin(), top.begin() + 21, top.begin() + 21));
    EXPECT_TRUE(std::is_sorted(values.begin(), values.begin() + 21, std::greater<>()));
    EXPECT_EQ(after.submits - before.submits, 1);
    EXPECT_EQ(after.read_backs - before.read_backs, 1);
    EXPECT_EQ(after.read_back_bytes - before.read_back_bytes, 2 * 21 * 8);
  }
}

TEST(VulkanDecoderSteps, ALimitOfMemoryThatDoesNotSufficeIsAnErrorThatNamesIt) {
  QWENCH_NEEDS_VULKAN(device);
  const GoldenModel golden("qwen3-tiny-bf16-tied");
  VulkanOptions options = on(*device);
  options.memory = 50'000;
  try {
    Model model(golden, options, std::nullopt, DType::f16);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::out_of_memory);
    EXPECT_NE(std::string(error.what()).find("--vram"), std::string::npos) << error.what();
  }
}

// The last of all: what the tests above did is looked at, where validation layers are installed and asked
// for.
TEST(VulkanDecoderSteps, ValidationLayersHaveNothingToSay) {
  QWENCH_NEEDS_VULKAN(device);
  const char* asked = std::getenv("QWENCH_VULKAN_VALIDATION");
  if (asked == nullptr) GTEST_SKIP() << "QWENCH_VULKAN_VALIDATION=1 asks for them";
  const GoldenModel golden("qwen2-tiny-window");
  const std::vector<TokenId> ids = ids_of(golden.json()["prompts"][1]["ids"]);
  for (const int layers : {0, 1, 100}) {
    VulkanOptions options = on(*device);
    if (layers < 100) options.gpu_layers = layers;
    options.hides_memory = layers != 0;
    Model model(golden, options, std::nullopt, layers == 1 ? DType::bf16 : DType::f16);
    model.logits(ids, 0, static_cast<int>(ids.size()), block_table());
    model.greedy(ids, 4, block_table());
    std::array<TokenId, kMostTop> top{};
    std::array<float, kMostTop> values{};
    model.backend().top_k(model.decoder().logits(0, 1), model.config().vocab_size, kMostTop, top, values);
    model.backend().copy_block(model.cache(), 1, 2);
    model.backend().measure(true);
    model.greedy(ids, 1, block_table());
    model.backend().measure(false);
    EXPECT_FALSE(model.backend().measured().empty());
  }
  EXPECT_EQ(vulkan_validation_messages(), 0);
}

}  // namespace
}  // namespace qwench
