#include "cli/inspect_views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/model_flags.h"
#include "cli/terminal.h"
#include "core/utf8.h"

namespace qwench::cli {
namespace {

using Row = std::vector<std::string>;

size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

/// Columns aligned; those in `right` to the right.
std::string table(const std::vector<Row>& rows, const std::vector<bool>& right, bool bold_head) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
  }
  std::string text;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const std::string space(widths[i] - columns(rows[r][i]), ' ');
      const bool to_right = i < right.size() && right[i];
      if (i > 0) line += "  ";
      line += to_right ? space + rows[r][i] : rows[r][i] + (i + 1 < rows[r].size() ? space : "");
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += styled(line, kBold, bold_head && r == 0) + "\n";
  }
  return text;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{} bytes", bytes);
  return short_bytes(static_cast<double>(bytes));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string value_text(const Json& value) {
  return value.is_string() ? printable(value.get<std::string>())
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string context_text(const ModelConfig& config) {
  const RopeConfig& rope = config.rope;
  std::string text = fmt::format("{} positions; RoPE theta {}", config.max_position, rope.theta);
  if (rope.type != RopeConfig::Type::standard)
    text += fmt::format(", {} scaling, factor {:g}", name(rope.type), rope.factor);
  const auto windowed =
      std::count_if(config.sliding_window.begin(), config.sliding_window.end(), [](int w) { return w > 0; });
  if (windowed > 0) {
    text += fmt::format("; {} layers see the last {} positions", windowed,
                        *std::max_element(config.sliding_window.begin(), config.sliding_window.end()));
  }
  return text;
}

}  // namespace

std::string card_text(const ModelCard& card, const Listing& listing, bool colours) {
  std::vector<Row> rows;
  const auto add = [&](std::string label, std::string value) {
    rows.push_back({std::move(label), std::move(value)});
  };
  const auto number = [](int64_t n) { return short_number(static_cast<double>(n)); };
  add("family",
      card.family.empty()
          ? "not named"
          : printable(card.family) +
                (card.architecture.empty() ? "" : fmt::format(" ({})", printable(card.architecture))));
  std::string parameters = number(card.parameters);
  if (card.active_parameters != card.parameters)
    parameters += fmt::format(", {} active for a token", number(card.active_parameters));
  parameters += fmt::format(": embedding {}", number(card.embedding_parameters));
  parameters += fmt::format(", {} layers of {}", card.layers, number(card.layer_parameters));
  parameters +=
      card.tied ? ", the head is the embedding" : fmt::format(", head {}", number(card.head_parameters));
  add("parameters", parameters);
  if (card.config) {
    const ModelConfig& c = *card.config;
    add("hidden size", fmt::format("{}, intermediate size {}", c.hidden_size, c.intermediate_size));
    add("attention",
        fmt::format("{} heads on {} key/value heads of {} dimensions{}{}", c.num_heads, c.num_kv_heads,
                    c.head_dim, c.qk_norm ? ", QK-norm" : "",
                    listing.find("model.layers.0.self_attn.q_proj.bias") != nullptr ? ", QKV biases" : ""));
    add("context", context_text(c));
    add("vocabulary", fmt::format("{} ids", c.vocab_size));
  }
  std::string types;
  for (const auto& [type, bytes] : card.bytes_by_type)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", type, bytes_text(bytes));
  add("stored as", types);
  add("files", fmt::format("{} in {} file{}, {}", card.format, listing.files().size(),
                           listing.files().size() == 1 ? "" : "s", bytes_text(listing.bytes())));
  if (!card.not_run.empty()) add("not run", printable(card.not_run));
  return styled(printable(card.name), kBold, colours) + "\n" + table(rows, {}, false);
}

std::string config_text(const std::vector<ConfigField>& fields, const std::vector<std::string>& unused,
                        bool colours) {
  std::vector<Row> rows;
  for (const ConfigField& field : fields) {
    const bool named = field.origin == ConfigField::Origin::file && field.source != field.name;
    rows.push_back({printable(field.name), value_text(field.value),
                    field.origin == ConfigField::Origin::file
                        ? (named ? "from " + printable(field.source) : "")
                        : fmt::format("({})", name(field.origin))});
  }
  std::string text = styled("config", kBold, colours) + "\n" + table(rows, {}, false);
  if (!unused.empty())
    text += styled(
        fmt::format("without effect here: {}\n", printable(fmt::format("{}", fmt::join(unused, ", ")))), kDim,
        colours);
  return text;
}

std::string tensors_text(const std::vector<const ListedTensor*>& tensors, const Listing& listing,
                         const std::vector<std::optional<TensorStats>>& stats, bool colours) {
  std::vector<Row> rows{{"tensor", "type", "shape", "bytes", "file", "offset"}};
  if (!stats.empty())
    rows.front() = {"tensor", "type", "shape", "min", "max", "mean", "std", "zeros", "NaN", "Inf"};
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ListedTensor& t = *tensors[i];
    Row row{printable(t.name), t.type_name, shape_text(t.shape)};
    if (stats.empty()) {
      row.push_back(std::to_string(t.bytes.size()));
      row.push_back(printable(listing.files()[t.file].path.filename().string()));
      row.push_back(std::to_string(t.offset));
    } else if (stats[i]) {
      const TensorStats& s = *stats[i];
      for (const double value : {static_cast<double>(s.min), static_cast<double>(s.max), s.mean, s.std})
        row.push_back(fmt::format("{:.4g}", value));
      for (const int64_t count : {s.zeros, s.nan, s.inf}) row.push_back(std::to_string(count));
    } else {
      row.insert(row.end(), 7, "-");
    }
    rows.push_back(std::move(row));
  }
  const std::vector<bool> right =
      stats.empty() ? std::vector<bool>{false, false, false, true, false, true}
                    : std::vector<bool>{false, false, false, true, true, true, true, true, true, true};
  return table(rows, right, colours);
}

std::string diff_text(const ModelDiff& diff, bool colours) {
  std::string text;
  if (!diff.fields.empty()) {
    std::vector<Row> rows{{"config", "first", "second"}};
    for (const ModelDiff::Field& field : diff.fields)
      rows.push_back({printable(field.name), value_text(field.a), value_text(field.b)});
    text += table(rows, {}, colours);
  }
  if (!diff.tensors.empty()) {
    std::vector<Row> rows{{"tensor", "difference"}};
    for (const ModelDiff::Tensor& tensor : diff.tensors)
      rows.push_back({printable(tensor.name), tensor.what});
    text += table(rows, {}, colours);
  }
  if (diff.equal()) return fmt::format("equal: the config and {} tensors\n", diff.equal_tensors);
  return text + fmt::format("{} field{} of the config and {} tensor{} differ; {} tensors have equal values\n",
                            diff.fields.size(), diff.fields.size() == 1 ? "" : "s", diff.tensors.size(),
                            diff.tensors.size() == 1 ? "" : "s", diff.equal_tensors);
}

Json tensors_json(const std::vector<const ListedTensor*>& tensors, const Listing& listing,
                  const std::vector<std::optional<TensorStats>>& stats) {
  Json list = Json::array();
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const ListedTensor& t = *tensors[i];
    Json object{{"name", to_valid_utf8(t.name)},
                {"stored_name", to_valid_utf8(t.stored_name)},
                {"type", t.type_name},
                {"shape", t.shape},
                {"bytes", t.bytes.size()},
                {"file", to_valid_utf8(listing.files()[t.file].path.filename().string())},
                {"offset", t.offset}};
    if (!stats.empty() && stats[i]) {
      const TensorStats& s = *stats[i];
      object["stats"] = {{"min", finite(s.min)}, {"max", finite(s.max)}, {"mean", finite(s.mean)},
                         {"std", finite(s.std)}, {"zeros", s.zeros},     {"nan", s.nan},
                         {"inf", s.inf},         {"count", s.count}};
    }
    list.push_back(std::move(object));
  }
  return list;
}

Json config_json(const std::vector<ConfigField>& fields) {
  Json list = Json::array();
  for (const ConfigField& field : fields)
    list.push_back({{"name", field.name},
                    {"value", field.value},
                    {"origin", name(field.origin)},
                    {"source", field.source}});
  return list;
}

}  // namespace qwench::cli
