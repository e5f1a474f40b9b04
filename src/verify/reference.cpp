#include "verify/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/json_fields.h"
#include "kernels/unpack.h"
#include "qwench/error.h"

namespace qwench {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFormat = 1;
constexpr int64_t kMaxTokens = 1 << 24;

fs::path json_file(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const char* name : {"reference.json", "golden.json"}) {
      if (fs::exists(path / name, error)) return path / name;
    }
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: there is no reference.json in this folder; tools/record_reference.py makes one",
                    path.string()));
  }
  if (path.extension() == ".safetensors") return fs::path(path).replace_extension(".json");
  return path;
}

std::vector<double> numbers(const JsonFields& fields, const char* key, size_t count) {
  const Json* list = fields.find(key);
  if (list == nullptr) return {};
  const std::string expected = fmt::format("a list of {} finite numbers", count);
  if (!list->is_array() || list->size() != count) fields.wrong(key, *list, expected);
  std::vector<double> values;
  for (const Json& value : *list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) fields.wrong(key, value, expected);
    values.push_back(value.get<double>());
  }
  return values;
}

double seconds(const JsonFields& fields, const char* key) {
  const std::optional<double> value = fields.number(key);
  if (!value) throw Error(ErrorKind::malformed, fmt::format("{}: `{}` is missing", fields.what(), key));
  if (*value <= 0) fields.wrong(key, *fields.find(key), "a number of seconds above 0");
  return *value;
}

std::vector<TokenId> required_ids(const JsonFields& fields) {
  const Json* list = fields.find("ids");
  if (list == nullptr) throw Error(ErrorKind::malformed, fmt::format("{}: `ids` is missing", fields.what()));
  if (!list->is_array() || list->empty()) fields.wrong("ids", *list, "a list of token ids");
  return fields.token_ids("ids");
}

ReferencePrompt read_prompt(const Json& json, const std::string& what) {
  const JsonFields fields(json, what);
  ReferencePrompt prompt;
  prompt.ids = required_ids(fields);
  prompt.greedy = fields.token_ids("greedy");
  prompt.margins = numbers(fields, "greedy_margins", prompt.greedy.size());
  return prompt;
}

ReferencePerplexity read_perplexity(const Json& json, const std::string& what) {
  const JsonFields fields(json, what);
  ReferencePerplexity perplexity;
  perplexity.ids = required_ids(fields);
  if (perplexity.ids.size() < 2) fields.wrong("ids", *fields.find("ids"), "a list of at least two token ids");
  perplexity.nll = numbers(fields, "nll", perplexity.ids.size() - 1);
  const std::optional<double> mean = fields.number("mean_nll");
  if (!mean) throw Error(ErrorKind::malformed, fmt::format("{}: `mean_nll` is missing", what));
  perplexity.mean_nll = *mean;
  return perplexity;
}

ReferenceTimings read_timings(const Json& json, const std::string& what, size_t prompts) {
  const JsonFields fields(json, what);
  ReferenceTimings timings;
  timings.device = fields.string("device").value_or("");
  timings.prompt = static_cast<int>(fields.required_integer("prompt", 0, static_cast<int64_t>(prompts) - 1));
  timings.new_tokens = static_cast<int>(fields.required_integer("new_tokens", 1, kMaxTokens));
  timings.prefill_seconds = seconds(fields, "prefill_seconds");
  timings.with_cache_seconds = seconds(fields, "with_cache_seconds");
  timings.without_cache_seconds = seconds(fields, "without_cache_seconds");
  return timings;
}

std::string read_made_with(const JsonFields& fields) {
  const Json* made_with = fields.find("made_with");
  if (made_with == nullptr) return "";
  if (!made_with->is_object())
    fields.wrong("made_with", *made_with, "an object of programs and their versions");
  std::string text;
  for (const auto& [program, version] : made_with->items()) {
    if (!version.is_string()) fields.wrong("made_with", version, "a version in quotes");
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", program, version.get<std::string>());
  }
  return text;
}

}  // namespace

int64_t Reference::Tensor::cols() const {
  int64_t product = 1;
  for (size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return std::max<int64_t>(product, 1);
}

Reference Reference::open(const fs::path& path) {
  Reference reference;
  reference.path_ = json_file(path);
  reference.read_json();
  reference.read_tensors(fs::path(reference.path_).replace_extension(".safetensors"));
  return reference;
}

void Reference::read_json() {
  const std::string what = path_.string();
  const Json json = parse_json(read_text_file(path_), what);
  const JsonFields fields(json, what);
  fields.required_integer("format", kFormat, kFormat);
  made_with_ = read_made_with(fields);
  compute_ = fields.string("compute").value_or("");
  const Json* prompts = fields.find("prompts");
  if (prompts == nullptr) throw Error(ErrorKind::malformed, what + ": `prompts` is missing");
  if (!prompts->is_array() || prompts->empty()) fields.wrong("prompts", *prompts, "a list of prompts");
  for (size_t i = 0; i < prompts->size(); ++i)
    prompts_.push_back(read_prompt((*prompts)[i], fmt::format("{}: prompts[{}]", what, i)));
  if (const Json* perplexity = fields.find("perplexity"))
    perplexity_ = read_perplexity(*perplexity, what + ": perplexity");
  if (const Json* timings = fields.find("timings"))
    timings_ = read_timings(*timings, what + ": timings", prompts_.size());
}

void Reference::read_tensors(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return;  // token ids and perplexity alone
  file_ = MappedFile::open(file);
  for (SafetensorsEntry& entry : parse_safetensors(file_->bytes(), file.string())) {
    if (!entry.dtype) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: the tensor {} is of type {}, expected F32, F16 or BF16", file.string(),
                              entry.name, entry.dtype_name));
    }
    names_.push_back(entry.name);
    entries_.emplace(entry.name, std::move(entry));
  }
}

Reference::Tensor Reference::tensor(const std::string& name) const {
  const SafetensorsEntry& entry = entries_.at(name);
  Tensor tensor;
  tensor.shape = entry.shape;
  const uint64_t width = bytes_of(*entry.dtype, 1);
  tensor.values.resize(entry.bytes.size() / width);
  if (!tensor.values.empty()) {
    unpack_reference(*entry.dtype, entry.bytes.data(), 0, static_cast<int64_t>(tensor.values.size()),
                     tensor.values.data());
  }
  return tensor;
}

}  // namespace qwench
