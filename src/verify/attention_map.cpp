#include "verify/attention_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.h"
#include "qwench/error.h"

namespace qwench {
namespace {

constexpr int kLargestPicture = 256;  // 33,000 cells, some 4 MB
constexpr int kCell = 18;
constexpr size_t kLongestLabel = 14;  // characters

void check_index(const char* what, int value, int count) {
  if (value < 0 || value >= count) {
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} {}: the model has {}, counted from 0", what, value, count));
  }
}

// Text of an XML element: markup escaped, what no XML may hold replaced; in a token's label, spaces are
// shown.
std::string xml(const std::string& text, size_t longest, bool label) {
  std::string out;
  size_t count = 0;
  for (const char32_t code : to_utf32(text)) {
    if (count++ == longest) {
      out += "…";
      break;
    }
    switch (code) {
      case U'<':
        out += "&lt;";
        break;
      case U'>':
        out += "&gt;";
        break;
      case U'&':
        out += "&amp;";
        break;
      case U' ':
        out += label ? "\u00B7" : " ";
        break;
      case U'\n':
        out += "⏎";
        break;
      default:
        append_utf8(out, code < 0x20 || code == 0x7F || code >= 0xFFFE ? kReplacementCharacter : code);
    }
  }
  return out;
}

}  // namespace

AttentionMap attention_map(Subject& subject, std::span<const TokenId> ids, int layer, int head) {
  subject.check(ids);
  const ModelConfig& config = subject.config();
  check_index("layer", layer, config.num_layers);
  check_index("head", head, config.num_heads);
  std::vector<float> q;  // [tokens, heads * head_dim]
  std::vector<float> k;  // [tokens, kv_heads * head_dim]
  {
    const ScopedProbe probe(subject.decoder(), [&](std::string_view name, int at, const Matrix& value) {
      if (at == layer && name == "q") q = subject.values_of(value);
      if (at == layer && name == "k") k = subject.values_of(value);
    });
    const SequenceInput input{ids, 0, static_cast<int>(ids.size()), subject.blocks(), false, true};
    subject.forward(std::span(&input, 1));
  }
  AttentionMap map{layer, head, static_cast<int>(ids.size()), {}};
  const auto size = ids.size();
  map.weights.resize(size * size);
  const auto dim = static_cast<size_t>(config.head_dim);
  const size_t q_width = static_cast<size_t>(config.num_heads) * dim;
  const size_t k_width = static_cast<size_t>(config.num_kv_heads) * dim;
  const auto kv_head = static_cast<size_t>(head / (config.num_heads / config.num_kv_heads));
  const int window = config.sliding_window[static_cast<size_t>(layer)];
  std::vector<double> scores(size);
  for (size_t row = 0; row < size; ++row) {
    const size_t first =
        window > 0 && row + 1 > static_cast<size_t>(window) ? row + 1 - static_cast<size_t>(window) : 0;
    double highest = -INFINITY;
    for (size_t column = first; column <= row; ++column) {
      double dot = 0;
      for (size_t i = 0; i < dim; ++i) {
        dot += static_cast<double>(q[row * q_width + static_cast<size_t>(head) * dim + i]) *
               k[column * k_width + kv_head * dim + i];
      }
      scores[column] = dot / std::sqrt(static_cast<double>(dim));
      highest = std::max(highest, scores[column]);
    }
    double sum = 0;
    for (size_t column = first; column <= row; ++column)
      sum += scores[column] = std::exp(scores[column] - highest);
    for (size_t column = first; column <= row; ++column)
      map.weights[row * size + column] = static_cast<float>(scores[column] / sum);
  }
  return map;
}

std::string attention_svg(const AttentionMap& map, std::span<const std::string> labels,
                          const std::string& title) {
  if (map.size > kLargestPicture) {
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("a picture of {} positions is too large; the most is {}", map.size, kLargestPicture));
  }
  const int left = 130;
  const int top = 150;
  const int side = kCell * map.size;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>{2}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"12\" y=\"22\" font-size=\"14\" font-weight=\"bold\">{2}</text>\n"
      "<text x=\"12\" y=\"40\" fill=\"#666\">rows: the token that looks; columns: what it looks at</text>\n",
      std::max(left + side + 20, 420), top + side + 20, xml(title, 200, false));
  for (int i = 0; i < map.size; ++i) {
    const std::string label = xml(labels[static_cast<size_t>(i)], kLongestLabel, true);
    const int middle = i * kCell + kCell / 2;
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 6, top + middle + 4,
                       label);
    svg += fmt::format("<text transform=\"translate({},{}) rotate(-60)\">{}</text>\n", left + middle + 4,
                       top - 6, label);
  }
  for (int row = 0; row < map.size; ++row) {
    for (int column = 0; column <= row; ++column) {
      const float weight = map.at(row, column);
      // The square root shows small weights, which are most of them.
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#08306b\" fill-opacity=\"{:.3f}\">"
          "<title>{} → {}: {:.4f}</title></rect>\n",
          left + column * kCell, top + row * kCell, kCell, kCell, std::sqrt(weight), row, column, weight);
    }
  }
  svg += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#999\"/>\n</svg>\n", left,
      top, side, side);
  return svg;
}

}  // namespace qwench
