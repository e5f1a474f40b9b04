#include "inspect/model_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/utf8.h"
#include "inspect/model_card.h"

namespace qwench {
namespace {

const ConfigField* find(const std::vector<ConfigField>& fields, const std::string& name) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const ConfigField& f) { return f.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

void compare_fields(const Listing& a, const Listing& b, ModelDiff& diff) {
  const std::vector<ConfigField> left = config_fields(a, model_card(a));
  const std::vector<ConfigField> right = config_fields(b, model_card(b));
  for (const ConfigField& field : left) {
    const ConfigField* other = find(right, field.name);
    if (other == nullptr || other->value != field.value)
      diff.fields.push_back({field.name, field.value, other == nullptr ? Json(nullptr) : other->value});
  }
  for (const ConfigField& field : right) {
    if (find(left, field.name) == nullptr) diff.fields.push_back({field.name, nullptr, field.value});
  }
}

/// Empty when they are equal.
std::string compare(const ListedTensor& a, const ListedTensor& b, ThreadPool& pool) {
  if (a.shape != b.shape)
    return fmt::format("shape [{}] and [{}]", fmt::join(a.shape, ", "), fmt::join(b.shape, ", "));
  if (!a.dtype || !b.dtype) {
    if (a.type_name != b.type_name) return fmt::format("type {} and {}", a.type_name, b.type_name);
    return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end())
               ? ""
               : fmt::format("contents of type {} differ", a.type_name);
  }
  const double difference = max_difference(a, b, pool);
  const std::string types =
      a.dtype == b.dtype ? std::string() : fmt::format("type {} and {}, ", a.type_name, b.type_name);
  if (difference > 0) return fmt::format("{}values differ by up to {:.3g}", types, difference);
  return types.empty() ? "" : types + "same values";
}

}  // namespace

ModelDiff diff_models(const Listing& a, const Listing& b, ThreadPool& pool, const Progress& progress,
                      const std::stop_token& stop) {
  ModelDiff diff;
  compare_fields(a, b, diff);
  uint64_t done = 0;
  for (const ListedTensor& tensor : a.tensors()) {
    if (stop.stop_requested()) return diff;
    const ListedTensor* other = b.find(tensor.name);
    const std::string what = other == nullptr ? "only in the first" : compare(tensor, *other, pool);
    if (!what.empty()) diff.tensors.push_back({tensor.name, what});
    if (what.empty() || what.ends_with("same values")) ++diff.equal_tensors;
    done += tensor.bytes.size();
    if (progress) progress(static_cast<double>(done) / static_cast<double>(std::max<uint64_t>(a.bytes(), 1)));
  }
  for (const ListedTensor& tensor : b.tensors()) {
    if (a.find(tensor.name) == nullptr) diff.tensors.push_back({tensor.name, "only in the second"});
  }
  return diff;
}

Json to_json(const ModelDiff& diff) {
  Json fields = Json::array();
  for (const ModelDiff::Field& field : diff.fields)
    fields.push_back({{"name", field.name}, {"a", field.a}, {"b", field.b}});
  Json tensors = Json::array();
  for (const ModelDiff::Tensor& tensor : diff.tensors)
    tensors.push_back({{"name", to_valid_utf8(tensor.name)}, {"what", tensor.what}});
  return {{"equal", diff.equal()},
          {"config", std::move(fields)},
          {"tensors", std::move(tensors)},
          {"equal_tensors", diff.equal_tensors}};
}

}  // namespace qwench
