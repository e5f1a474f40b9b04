#include "verify/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "engine/model_plan.h"
#include "qwench/error.h"
#include "verify/random_ids.h"
#include "verify/subject.h"

namespace qwench {
namespace {

constexpr Tolerance kStates{1e-3, 1e-3};
constexpr Tolerance kLogits{5e-3, 0};
constexpr int kGreedyTokens = 16;

/// The states of a pass by their names, in the order in which they were computed, and the logits.
struct States {
  std::vector<std::string> names;
  std::map<std::string, std::pair<std::vector<float>, int>> values;  // and columns

  void add(const std::string& name, std::vector<float> numbers, int cols) {
    names.push_back(name);
    values[name] = {std::move(numbers), cols};
  }
};

States states_of(Subject& subject, std::span<const TokenId> ids) {
  States states;
  const ScopedProbe probe(subject.decoder(), [&](std::string_view name, int layer, const Matrix& value) {
    const std::string key = name == "hidden" && layer == 0 ? "embed_tokens"
                            : name == "hidden"             ? fmt::format("layers.{}", layer - 1)
                            : name == "norm"               ? "norm"
                                                           : fmt::format("layers.{}.{}", layer, name);
    states.add(key, subject.values_of(value), value.cols);
  });
  const SequenceInput input{ids, 0, static_cast<int>(ids.size()), subject.blocks(), true, true};
  subject.forward(std::span(&input, 1));
  states.add("lm_head", subject.logits(), subject.config().vocab_size);
  return states;
}

// What the CPU keeps so that the weights have the device's values.
DType same_values(const Checkpoint& checkpoint, std::optional<DType> asked) {
  const DType kept = asked.value_or(stored_type(checkpoint));
  if (asked == DType::f32) return DType::f32;
  return is_quantized(kept) ? DType::f32 : DType::f16;
}

/// Decodes on both, each from its own ids, until they part.
void compare_greedy(Subject& device, Subject& cpu, std::span<const TokenId> prompt, int count,
                    DeviceReport& report) {
  const std::vector<TokenId> want = cpu.greedy(prompt, count);
  const std::vector<TokenId> got = device.greedy(prompt, count);
  const auto equal = std::mismatch(want.begin(), want.end(), got.begin()).first - want.begin();
  report.greedy_tokens = count;
  report.greedy_equal = static_cast<int>(equal);
  if (equal == count) return;
  std::vector<TokenId> ids(prompt.begin(), prompt.end());
  ids.insert(ids.end(), want.begin(), want.begin() + equal);
  cpu.run(ids, 0, 0, static_cast<int>(ids.size()) - 1, [&](int, std::span<const float> logits) {
    report.margin =
        std::abs(static_cast<double>(logits[static_cast<size_t>(want[static_cast<size_t>(equal)])]) -
                 logits[static_cast<size_t>(got[static_cast<size_t>(equal)])]);
  });
  report.greedy_ok = report.margin <= 2 * kLogits.absolute;
}

}  // namespace

bool DeviceReport::ok() const {
  return greedy_ok && ways.ok() &&
         std::all_of(rows.begin(), rows.end(), [](const ReferenceRow& row) { return row.difference.ok(); });
}

std::string DeviceReport::verdict() const {
  for (const ReferenceRow& row : rows) {
    if (!row.difference.ok())
      return fmt::format("the device parts from the CPU at {}: by {:.3g}, where {:.3g} is allowed", row.name,
                         row.difference.max_abs(), row.difference.tolerance());
  }
  if (!greedy_ok)
    return fmt::format("greedy token {} is another one than the CPU's, whose margin is {:.3g}", greedy_equal,
                       margin);
  if (!ways.ok()) return ways.verdict();
  return fmt::format("the device computes what the CPU computes, {} states within tolerance, and {}",
                     rows.size(), ways.verdict());
}

DeviceReport check_device(const std::shared_ptr<const Checkpoint>& checkpoint,
                          const SelfCheckOptions& options) {
  const ModelConfig& config = checkpoint->config();
  const auto limit = static_cast<int>(std::min<int64_t>(config.max_position, 1 << 20));
  const int length = std::min(options.tokens, limit);
  const std::vector<TokenId> ids = random_ids(length, config.vocab_size, options.seed);
  const auto tell = [&](const std::string& what) {
    if (options.progress) options.progress(what);
  };
  DeviceReport report;
  report.ways = check_self(checkpoint, options);

  SubjectOptions set_up;
  set_up.kv_dtype = options.kv_dtype;
  set_up.threads = options.threads;
  const int greedy = std::min(kGreedyTokens, limit - length + 1);
  set_up.positions = std::min(limit, length + greedy);
  set_up.max_rows = length;
  set_up.dtype = same_values(*checkpoint, options.dtype);
  report.cpu_weights = name(*set_up.dtype);
  tell("the CPU");
  Subject cpu(checkpoint, set_up);
  const States want = states_of(cpu, ids);
  set_up.dtype = options.dtype;
  set_up.device = options.device;
  set_up.gpu_layers = options.gpu_layers;
  set_up.device_memory = options.device_memory;
  tell("the device");
  Subject device(checkpoint, set_up);
  report.device = device.backend().description();
  const States got = states_of(device, ids);
  for (const std::string& name : want.names) {
    const auto& [expected, cols] = want.values.at(name);
    ReferenceRow row{name, {}};
    row.difference.add(got.values.at(name).first, expected, cols, name == "lm_head" ? kLogits : kStates, 0);
    report.rows.push_back(std::move(row));
  }
  tell("greedy tokens");
  if (greedy > 0) compare_greedy(device, cpu, ids, greedy, report);
  return report;
}

}  // namespace qwench
