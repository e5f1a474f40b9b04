#include "convert/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>

#include "checkpoint/expected_tensors.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/tensor_names.h"
#include "convert/gguf_metadata.h"
#include "convert/gguf_vocabulary.h"
#include "core/thread_pool.h"
#include "engine/model_text.h"
#include "kernels/quantize.h"
#include "kernels/unpack.h"
#include "model/kept_type.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr uint64_t kPieceBytes = 16 << 20;
constexpr const char* kRopeFactors = "rope_freqs.weight";

class Stopped {};

struct Output {
  const TensorView* source;  // null: rope_freqs.weight
  DType dtype;
  int heads = 0;  // whose rows are interleaved on the way; 0: they stay in order
};

/// llama.cpp's rows of q and k for the llama architecture: the two halves of each head take turns, as its
/// RoPE rotates neighbours. The row of the source that becomes row `to`.
int64_t interleaved(int64_t to, int64_t head_dim) {
  const int64_t in_head = to % head_dim;
  return to - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
}

class Conversion {
 public:
  Conversion(const Checkpoint& checkpoint, const QuantizeOptions& options)
      : checkpoint_(checkpoint), options_(options), pool_(thread_count(options.threads)) {}

  QuantizeReport run(const std::filesystem::path& out) {
    add_metadata(out);
    for (const ExpectedTensor& expected : expected_tensors(checkpoint_.config())) {
      if (const TensorView* tensor = checkpoint_.find(expected.name)) add(*tensor);
    }
    factors_ = stored_factors();
    if (!factors_.empty()) {
      writer_.add_tensor(kRopeFactors, DType::f32, {static_cast<int64_t>(factors_.size())});
      outputs_.push_back({nullptr, DType::f32});
    }
    QuantizeReport report = describe();
    try {
      writer_.write(out, [&](size_t index, const GgufWriter::Put& put) { produce(outputs_[index], put); });
    } catch (const Stopped&) {
      report.stopped = true;
    }
    return report;
  }

 private:
  void add_metadata(const std::filesystem::path& out) {
    const GgufFile* gguf = checkpoint_.gguf();
    if (gguf == nullptr) {
      const ModelText text = ModelText::open(checkpoint_);
      add_model_metadata(writer_, checkpoint_, out.stem().string());
      add_vocabulary(writer_, checkpoint_, text);
    } else {
      for (const std::string_view key : gguf->keys()) {
        const bool ours = key == "general.file_type" || key == "general.quantization_version" ||
                          key == "general.alignment" || key.starts_with("split.");
        if (!ours) writer_.add_copy(key, *gguf->find(key));
      }
    }
    writer_.add_count("general.file_type", gguf_file_type(options_.type));
    writer_.add_count("general.quantization_version", 2);
  }

  void add(const TensorView& tensor) {
    const bool tied = tensor.name == "lm_head.weight" && checkpoint_.config().tie_word_embeddings;
    if (tied) return;
    Output output{&tensor, kept_type(tensor, options_.type)};
    const ModelConfig& config = checkpoint_.config();
    if (config.family == "llama" && !config.interleaved_rope) {
      if (tensor.name.find(".q_proj.") != std::string::npos) output.heads = config.num_heads;
      if (tensor.name.find(".k_proj.") != std::string::npos) output.heads = config.num_kv_heads;
    }
    writer_.add_tensor(gguf_name(tensor.name), output.dtype, tensor.shape);
    outputs_.push_back(output);
    total_ += tensor.bytes.size();
  }

  std::vector<float> stored_factors() const {
    const std::vector<float>& given = checkpoint_.config().rope.freq_factors;
    return given.empty() ? rope_factors(checkpoint_.config()) : given;
  }

  QuantizeReport describe() const {
    QuantizeReport report;
    std::map<std::pair<DType, DType>, QuantizeReport::Part> parts;
    for (const Output& output : outputs_) {
      if (output.source == nullptr) continue;
      auto& part = parts
                       .try_emplace({output.source->dtype, output.dtype},
                                    QuantizeReport::Part{output.source->dtype, output.dtype, 0, 0, 0})
                       .first->second;
      ++part.tensors;
      part.bytes_from += output.source->bytes.size();
      part.bytes_to += bytes_of(output.dtype, static_cast<uint64_t>(output.source->count()));
    }
    for (const auto& [types, part] : parts) {
      report.parts.push_back(part);
      report.bytes_from += part.bytes_from;
    }
    std::sort(report.parts.begin(), report.parts.end(),
              [](const auto& a, const auto& b) { return a.bytes_from > b.bytes_from; });
    report.bytes = writer_.bytes();
    return report;
  }

  void produce(const Output& output, const GgufWriter::Put& put) {
    if (output.source == nullptr) {
      put(std::as_bytes(std::span(factors_)));
      return;
    }
    const TensorView& tensor = *output.source;
    // A vector is one row; a bias of interleaved heads is a row for each of its numbers.
    const bool vector = tensor.shape.size() < 2;
    const int64_t rows = vector && output.heads > 0 ? tensor.count() : tensor.rows();
    const int64_t cols = tensor.count() / std::max<int64_t>(rows, 1);
    const auto row_bytes = static_cast<int64_t>(bytes_of(output.dtype, static_cast<uint64_t>(cols)));
    const int64_t rows_at_once =
        std::clamp<int64_t>(static_cast<int64_t>(kPieceBytes) / std::max<int64_t>(row_bytes, 1), 1, rows);
    for (int64_t first = 0; first < rows; first += rows_at_once) {
      if (options_.progress && !options_.progress(static_cast<double>(done_) / static_cast<double>(total_)))
        throw Stopped();
      const int64_t count = std::min(rows_at_once, rows - first);
      piece_.resize(static_cast<size_t>(count * row_bytes));
      convert_rows(output, rows, cols, first, count);
      put(piece_);
      done_ += static_cast<uint64_t>(count) * (tensor.bytes.size() / static_cast<uint64_t>(rows));
    }
    checkpoint_.release(tensor);
  }

  void convert_rows(const Output& output, int64_t rows, int64_t cols, int64_t first, int64_t count) {
    const TensorView& tensor = *output.source;
    const auto from_bytes = static_cast<int64_t>(bytes_of(tensor.dtype, static_cast<uint64_t>(cols)));
    const auto to_bytes = static_cast<int64_t>(bytes_of(output.dtype, static_cast<uint64_t>(cols)));
    const int64_t head_dim = output.heads > 0 ? rows / output.heads : 0;
    std::atomic<bool> overflow{false};
    pool_.parallel_for(count, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t row = head_dim > 0 ? interleaved(first + r, head_dim) : first + r;
        const std::byte* from = tensor.bytes.data() + row * from_bytes;
        std::byte* to = piece_.data() + r * to_bytes;
        if (tensor.dtype == output.dtype) {
          std::copy_n(from, to_bytes, to);
        } else if (!convert_row(tensor.dtype, from, output.dtype, cols, to)) {
          overflow = true;
        }
      }
    });
    if (overflow) {
      throw Error(
          ErrorKind::numeric,
          fmt::format("{}: the tensor {} holds numbers that {} cannot, or that are not finite; choose "
                      "bf16 or f32",
                      checkpoint_.path().string(), tensor.name, name(output.dtype)));
    }
  }

  /// False where a number has no finite counterpart.
  static bool convert_row(DType from_type, const std::byte* from, DType to_type, int64_t cols,
                          std::byte* to) {
    constexpr int64_t kPiece = 1024;  // whole blocks of every type
    std::array<float, kPiece> numbers;
    float largest = 0;
    bool finite = true;
    for (int64_t c = 0; c < cols; c += kPiece) {
      const int64_t n = std::min(kPiece, cols - c);
      unpack(from_type, from, c, n, numbers.data());
      for (int64_t i = 0; i < n; ++i) {
        const float magnitude = std::abs(numbers[static_cast<size_t>(i)]);
        finite = finite && std::isfinite(magnitude);
        largest = std::max(largest, magnitude);
      }
      std::byte* at = to + c / traits(to_type).block_size * traits(to_type).block_bytes;
      if (is_quantized(to_type)) {
        quantize(to_type, numbers.data(), n, at);
      } else {
        pack(to_type, numbers.data(), n, at);
      }
    }
    constexpr float kLargestHalf = 65519.99f;  // rounds to 65504, IEEE 754's largest binary16
    return finite && (to_type == DType::bf16 || to_type == DType::f32 || largest <= kLargestHalf);
  }

  const Checkpoint& checkpoint_;
  const QuantizeOptions& options_;
  ThreadPool pool_;
  GgufWriter writer_;
  std::vector<Output> outputs_;
  std::vector<float> factors_;
  std::vector<std::byte> piece_;
  uint64_t total_ = 0;  // bytes of the sources
  uint64_t done_ = 0;
};

}  // namespace

QuantizeReport quantize_model(const Checkpoint& checkpoint, const std::filesystem::path& out,
                              const QuantizeOptions& options) {
  if (is_quantized(options.type) && !can_quantize(options.type)) {
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{} cannot be written; choose f32, f16, bf16, q8_0, q4_0 or q4_k", name(options.type)));
  }
  check_tensors(checkpoint);
  std::error_code ignored;
  for (const auto& file : checkpoint.files()) {
    if (std::filesystem::equivalent(file, out, ignored)) {
      throw Error(ErrorKind::invalid_argument, fmt::format("{} is a file of the model itself", out.string()));
    }
  }
  if (!options.overwrite && std::filesystem::exists(out, ignored)) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} exists; name another file, or replace it with --force", out.string()));
  }
  return Conversion(checkpoint, options).run(out);
}

}  // namespace qwench
