#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "qwench/sampling.h"

namespace qwench {

/// A prompt and the most probable continuation that the reference found.
struct ReferencePrompt {
  std::vector<TokenId> ids;
  std::vector<TokenId> greedy;  ///< stop tokens ignored; may be empty
  std::vector<double> margins;  ///< [greedy] best minus second logit of each step; or empty
};

struct ReferencePerplexity {
  std::vector<TokenId> ids;
  std::vector<double> nll;  ///< [ids - 1] -ln p(ids[t + 1]); or empty
  double mean_nll = 0;
};

/// How fast the reference implementation was on the machine that recorded it.
struct ReferenceTimings {
  std::string device;                ///< "Intel(R) Xeon(R) ..., 8 threads, torch 2.15.0, float32"
  int prompt = 0;                    ///< index of the prompt
  int new_tokens = 0;                ///< decoded after it, at least 1
  double with_cache_seconds = 0;     ///< of prefill and all new tokens
  double without_cache_seconds = 0;  ///< the same, computing the whole sequence for each token
  double prefill_seconds = 0;        ///< of one forward pass over the prompt
};

/// Values recorded from the official implementation, in the format of docs/verify.md: a JSON file and,
/// unless token ids and perplexity are all there is, a safetensors file of the same name beside it.
/// Immutable; every number in it is checked against the others when it is opened.
class Reference {
 public:
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
    int64_t cols() const;  ///< elements of a position
  };

  /// `path` is the JSON file, the safetensors file, or a folder with reference.json or golden.json. Throws
  /// Error: not_found, malformed.
  static Reference open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }  ///< the JSON file
  const std::string& made_with() const { return made_with_; }  ///< "transformers 5.24.0, torch 2.15.0"
  const std::string& compute() const { return compute_; }      ///< the arithmetic used; may be empty
  const std::vector<ReferencePrompt>& prompts() const { return prompts_; }
  const std::optional<ReferencePerplexity>& perplexity() const { return perplexity_; }
  const std::optional<ReferenceTimings>& timings() const { return timings_; }

  const std::vector<std::string>& tensor_names() const { return names_; }  ///< in the order of the file
  bool has(const std::string& name) const { return entries_.contains(name); }
  /// Its values as f32; `name` must be there.
  Tensor tensor(const std::string& name) const;

 private:
  Reference() = default;
  void read_json();
  void read_tensors(const std::filesystem::path& file);

  std::filesystem::path path_;
  std::string made_with_;
  std::string compute_;
  std::vector<ReferencePrompt> prompts_;
  std::optional<ReferencePerplexity> perplexity_;
  std::optional<ReferenceTimings> timings_;
  std::optional<MappedFile> file_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::vector<std::string> names_;
};

}  // namespace qwench
