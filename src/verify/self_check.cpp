#include "verify/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "core/thread_pool.h"
#include "kernels/byte_rows.h"
#include "kernels/isa.h"
#include "qwench/error.h"
#include "verify/random_ids.h"
#include "verify/subject.h"

namespace qwench {
namespace {

constexpr int kSequences = 4;  // the one that is looked at, and three beside it
constexpr int kDecoded = 12;   // tokens at the end that are decoded one by one
// Instruction sets sum in another order: rounding grows to about this share of the largest logit.
constexpr double kIsaTolerance = 1e-4;
// Activations that are rounded to 16 bits for quantized weights turn a last bit's difference into one
// of 1.5e-5, those that are rounded to 8 bits into one of 4e-3.
constexpr double kWordsIsaTolerance = 1e-3;
constexpr double kBytesIsaTolerance = 5e-2;
// What other types of weights and cells may do: far more than their rounding does, far less than a mistake.
constexpr double kMaxMeanKl = 0.05;
constexpr double kMinAgreement = 0.85;

/// Rows of logits beside those of the plain computation.
class Match {
 public:
  Match(const std::vector<float>& baseline, size_t vocab) : baseline_(baseline), vocab_(vocab) {}

  void row(int position, std::span<const float> logits) {
    const std::span want = std::span(baseline_).subspan(static_cast<size_t>(position) * vocab_, vocab_);
    ++rows_;
    for (size_t i = 0; i < vocab_; ++i) {
      if (std::bit_cast<uint32_t>(logits[i]) == std::bit_cast<uint32_t>(want[i])) continue;
      equal_ = false;
      const double distance = std::abs(static_cast<double>(logits[i]) - want[i]);
      max_abs_ =
          std::max(max_abs_, std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
    }
  }

  SelfCheckLine line(std::string isa, std::string what) const {
    return {std::move(isa), std::move(what), rows_, max_abs_, 0, equal_ && rows_ > 0};
  }
  SelfCheckLine line_within(std::string isa, std::string what, double tolerance) const {
    return {std::move(isa), std::move(what), rows_, max_abs_, tolerance, max_abs_ <= tolerance && rows_ > 0};
  }

 private:
  const std::vector<float>& baseline_;
  size_t vocab_;
  int rows_ = 0;
  double max_abs_ = 0;
  bool equal_ = true;
};

/// The ways of computing one sequence's logits.
class Ways {
 public:
  Ways(Subject& subject, std::span<const TokenId> ids, uint64_t seed)
      : subject_(subject), ids_(ids), length_(static_cast<int>(ids.size())) {
    for (int i = 1; i < kSequences; ++i)
      others_.push_back(random_ids(length_, subject.config().vocab_size, seed + static_cast<uint64_t>(i)));
    // A permutation of all blocks of the cache, of which the sequence takes the first.
    for (int i = 0; i < kSequences; ++i) {
      const std::span<const int32_t> blocks = subject.blocks(i);
      shuffled_.insert(shuffled_.end(), blocks.begin(), blocks.end());
    }
    std::mt19937_64 generator(seed);
    std::shuffle(shuffled_.begin(), shuffled_.end(), generator);
    if (std::is_sorted(shuffled_.begin(), shuffled_.end())) std::reverse(shuffled_.begin(), shuffled_.end());
  }

  std::vector<float> whole() {
    std::vector<float> rows;
    rows.reserve(ids_.size() * subject_.vocab());
    run(0, length_, 0, subject_.blocks(),
        [&](int, std::span<const float> logits) { rows.insert(rows.end(), logits.begin(), logits.end()); });
    return rows;
  }

  void whole(Match& match) { run(0, length_, 0, subject_.blocks(), rows_of(match)); }
  void chunks(Match& match, int chunk) { run(0, length_, chunk, subject_.blocks(), rows_of(match)); }
  void shuffled_blocks(Match& match) { run(0, length_, 7, shuffled_, rows_of(match)); }

  void with_cache(Match& match) {
    const int decoded = std::min(kDecoded, length_ - 1);
    run(0, length_ - decoded, 0, subject_.blocks(), [](int, std::span<const float>) {});
    run(length_ - decoded, length_, 1, subject_.blocks(), rows_of(match));
  }

  void without_cache(Match& match) {
    std::set<int> lengths{length_};
    for (const int length : {1, 2, 16, 17, 64, 65, length_ - 1}) {
      if (length >= 1 && length < length_) lengths.insert(length);
    }
    for (const int length : lengths) {
      run(0, length, 0, subject_.blocks(), [&](int position, std::span<const float> logits) {
        if (position == length - 1) match.row(position, logits);
      });
    }
  }

  void beside_others(Match& match) {
    const SequenceInput inputs[] = {other(0, 0, std::min(length_, 33)), own(0, length_),
                                    other(1, 0, std::min(length_, 16)), other(2, 0, 1)};
    together(inputs, match);
  }

  void decoding_beside_others(Match& match) {
    const int decoded = std::min(kDecoded, length_ - 1);
    const int start = length_ - decoded;
    for (int i = 0; i < kSequences - 1; ++i) {
      const SequenceInput input = other(i, 0, start);
      subject_.forward(std::span(&input, 1));
    }
    const SequenceInput prompt = own(0, start);
    subject_.forward(std::span(&prompt, 1));
    for (int position = start; position < length_; ++position) {
      // One of the others is a prompt in chunks, as it joins a running batch.
      const SequenceInput inputs[] = {other(0, position, 1), other(1, 0, start), own(position, 1),
                                      other(2, position, 1)};
      together(inputs, match);
    }
  }

 private:
  using RowFunction = std::function<void(int position, std::span<const float> logits)>;

  static RowFunction rows_of(Match& match) {
    return [&match](int position, std::span<const float> logits) { match.row(position, logits); };
  }

  // Dynamic RoPE scaling looks at the whole length, whatever the part: the numbers are those of one prompt.
  SequenceInput input(std::span<const TokenId> ids, int start, int rows, int sequence) const {
    return {ids.subspan(static_cast<size_t>(start), static_cast<size_t>(rows)),
            start,
            length_,
            subject_.blocks(sequence),
            true,
            true};
  }
  SequenceInput own(int start, int rows) const { return input(ids_, start, rows, 0); }
  SequenceInput other(int index, int start, int rows) const {
    return input(others_[static_cast<size_t>(index)], start, rows, index + 1);
  }

  void run(int start, int end, int chunk, std::span<const int32_t> blocks, const RowFunction& f) {
    while (start < end) {
      const int rows = std::min(chunk > 0 ? chunk : end, end - start);
      SequenceInput part = own(start, rows);
      part.block_table = blocks;
      subject_.forward(std::span(&part, 1));
      subject_.for_each_logits([&](int row, std::span<const float> logits) { f(start + row, logits); });
      start += rows;
    }
  }

  void together(std::span<const SequenceInput> inputs, Match& match) {
    subject_.forward(inputs);
    int first = 0;
    std::pair<int, int> mine;
    int position = 0;
    for (const SequenceInput& part : inputs) {
      const int rows = static_cast<int>(part.tokens.size());
      if (part.block_table.data() == subject_.blocks(0).data()) {
        mine = {first, first + rows};
        position = part.start;
      }
      first += rows;
    }
    subject_.for_each_logits([&](int row, std::span<const float> logits) {
      if (row >= mine.first && row < mine.second) match.row(position + row - mine.first, logits);
    });
  }

  Subject& subject_;
  std::span<const TokenId> ids_;
  int length_;
  std::vector<std::vector<TokenId>> others_;
  std::vector<int32_t> shuffled_;
};

class SelfCheck {
 public:
  SelfCheck(std::shared_ptr<const Checkpoint> checkpoint, const SelfCheckOptions& options)
      : checkpoint_(std::move(checkpoint)), options_(options) {
    const ModelConfig& config = checkpoint_->config();
    const auto limit = static_cast<int>(std::min<int64_t>(config.max_position, 1 << 20));
    if (options.tokens < 2) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} tokens were asked for, but 2 are needed at least", options.tokens));
    }
    ids_ = random_ids(std::min(options.tokens, limit), config.vocab_size, options.seed);
  }

  SelfCheckReport run() {
    SelfCheckReport report;
    report.tokens = static_cast<int>(ids_.size());
    report.lines = bitwise();
    if (options_.device == "cpu") report.precision = precision();
    return report;
  }

 private:
  std::unique_ptr<Subject> subject(std::optional<DType> dtype, DType kv_dtype, int threads, int sequences) {
    const int length = static_cast<int>(ids_.size());
    SubjectOptions options;
    options.dtype = dtype;
    options.packed_bf16 = options_.packed_bf16;
    options.kv_dtype = kv_dtype;
    options.threads = threads;
    options.device = options_.device;
    options.gpu_layers = options_.gpu_layers;
    options.device_memory = options_.device_memory;
    options.positions = length;
    options.sequences = sequences;
    options.max_rows = sequences > 1 ? 3 * length + 1 : length;  // what Ways puts into one pass
    return std::make_unique<Subject>(checkpoint_, options);
  }

  void tell(const std::string& what) const {
    if (options_.progress) options_.progress(what);
  }

  std::vector<SelfCheckLine> bitwise() {
    const int threads = options_.threads > 0 ? options_.threads : available_cores();
    const auto main = subject(options_.dtype, options_.kv_dtype, threads, kSequences);
    std::vector<std::unique_ptr<Subject>> others;
    const bool on_device = options_.device != "cpu";
    for (const int count : {1, 2, 3}) {
      if (on_device) break;  // the threads of the CPU compute nothing then
      // More threads than cores wait for each other; two are needed to differ from one.
      if (count != threads && count <= std::max(available_cores(), 2))
        others.push_back(subject(options_.dtype, options_.kv_dtype, count, kSequences));
    }
    struct Restore {
      ~Restore() {
        set_isa("");
        set_isa_from_environment();
      }
    } restore;

    std::vector<SelfCheckLine> lines;
    std::vector<float> first;
    std::string first_isa;
    const std::vector<std::string> names = on_device ? std::vector<std::string>{"vulkan"} : available_isas();
    for (const std::string& isa : names) {
      if (!on_device) set_isa(isa);
      tell(isa);
      Ways ways(*main, ids_, options_.seed);
      const std::vector<float> baseline = ways.whole();
      const auto check = [&](const std::string& what, auto&& compute) {
        tell(isa + ", " + what);
        Match match(baseline, main->vocab());
        compute(match);
        lines.push_back(match.line(isa, what));
      };
      check("the same again", [&](Match& match) { ways.whole(match); });
      check("in chunks of 5, 16 and 47", [&](Match& match) {
        for (const int chunk : {5, 16, 47}) ways.chunks(match, chunk);
      });
      check("token by token, with the cache", [&](Match& match) { ways.with_cache(match); });
      check("without the cache", [&](Match& match) { ways.without_cache(match); });
      check("beside three other prompts", [&](Match& match) { ways.beside_others(match); });
      check("token by token beside others", [&](Match& match) { ways.decoding_beside_others(match); });
      check("cache blocks in another order", [&](Match& match) { ways.shuffled_blocks(match); });
      for (const auto& other : others) {
        Ways by_others(*other, ids_, options_.seed);
        check(fmt::format("{} thread{} instead of {}", other->threads(), other->threads() == 1 ? "" : "s",
                          threads),
              [&](Match& match) {
                by_others.whole(match);
                by_others.with_cache(match);
              });
      }
      if (first.empty()) {
        first = baseline;
        first_isa = isa;
        continue;
      }
      Match across(first, main->vocab());
      for (size_t p = 0; p < ids_.size(); ++p)
        across.row(static_cast<int>(p), std::span(baseline).subspan(p * main->vocab(), main->vocab()));
      float largest = 0;
      for (const float logit : first) largest = std::max(largest, std::abs(logit));
      const DType kept = totals(main->decoder().weights()).main_type;
      const double tolerance = multiplied_by_bytes(kept) ? kBytesIsaTolerance
                               : is_quantized(kept)      ? kWordsIsaTolerance
                                                         : kIsaTolerance;
      lines.push_back(
          across.line_within(isa, "beside " + first_isa, tolerance * static_cast<double>(largest)));
    }
    return lines;
  }

  std::vector<PrecisionLine> precision() {
    struct Variant {
      std::string what;
      std::optional<DType> dtype;
      DType kv_dtype;
    };
    const DType stored = main_type();
    std::vector<Variant> variants;
    if (stored != DType::f32)
      variants.push_back({fmt::format("weights as stored ({})", name(stored)), {}, DType::f32});
    for (const DType dtype : {DType::bf16, DType::f16}) {
      if (dtype != stored) variants.push_back({fmt::format("weights as {}", name(dtype)), dtype, DType::f32});
    }
    for (const DType dtype : {DType::f16, DType::bf16, DType::q8_0}) {
      if (dtype == DType::q8_0 && checkpoint_->config().head_dim % traits(dtype).block_size != 0) continue;
      variants.push_back({fmt::format("weights as f32, cache as {}", name(dtype)), DType::f32, dtype});
    }

    std::vector<PrecisionLine> lines;
    std::vector<float> baseline;
    try {
      tell("f32");
      baseline =
          Ways(*subject(DType::f32, DType::f32, options_.threads, kSequences), ids_, options_.seed).whole();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
      return {{"weights as f32", std::nullopt, error.what(), true}};
    }
    for (const Variant& variant : variants) {
      tell(variant.what);
      lines.push_back(against(baseline, variant.what, variant.dtype, variant.kv_dtype));
    }
    return lines;
  }

  PrecisionLine against(const std::vector<float>& baseline, const std::string& what,
                        std::optional<DType> dtype, DType kv_dtype) {
    PrecisionLine line{what, {}, "", true};
    try {
      const auto other = subject(dtype, kv_dtype, options_.threads, 1);
      Divergence divergence;
      other->run(ids_, 0, 0, 0, [&](int position, std::span<const float> logits) {
        const auto at = static_cast<size_t>(position);
        const std::optional<TokenId> next = at + 1 < ids_.size() ? std::optional(ids_[at + 1]) : std::nullopt;
        divergence.add(std::span(baseline).subspan(at * other->vocab(), other->vocab()), logits, next);
      });
      line.divergence = divergence.summary();
      line.ok = line.divergence->mean <= kMaxMeanKl && line.divergence->top1_agreement >= kMinAgreement;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::out_of_memory) throw;
      line.note = error.what();
    }
    return line;
  }

  // The type of most bytes.
  DType main_type() const {
    std::array<uint64_t, kDTypeCount> bytes{};
    for (const TensorView& tensor : checkpoint_->tensors())
      bytes[static_cast<size_t>(tensor.dtype)] += tensor.bytes.size();
    return static_cast<DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
  }

  std::shared_ptr<const Checkpoint> checkpoint_;
  const SelfCheckOptions& options_;
  std::vector<TokenId> ids_;
};

}  // namespace

bool SelfCheckReport::ok() const {
  return std::all_of(lines.begin(), lines.end(), [](const SelfCheckLine& line) { return line.ok; }) &&
         std::all_of(precision.begin(), precision.end(), [](const PrecisionLine& line) { return line.ok; });
}

std::string SelfCheckReport::verdict() const {
  for (const SelfCheckLine& line : lines) {
    if (!line.ok)
      return fmt::format("a promise is broken: with {}, \"{}\" differs by {:.3g}", line.isa, line.what,
                         line.max_abs);
  }
  for (const PrecisionLine& line : precision) {
    if (!line.ok) return fmt::format("\"{}\" is too far from f32", line.what);
  }
  const auto bits = std::count_if(lines.begin(), lines.end(),
                                  [](const SelfCheckLine& line) { return line.tolerance == 0; });
  return fmt::format("all {} computations that are promised to be equal are, bit for bit", bits);
}

SelfCheckReport check_self(const std::shared_ptr<const Checkpoint>& checkpoint,
                           const SelfCheckOptions& options) {
  return SelfCheck(checkpoint, options).run();
}

}  // namespace qwench
