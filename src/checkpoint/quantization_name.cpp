#include "checkpoint/quantization_name.h"

#include <algorithm>
#include <array>
#include <utility>

#include "qwench/error.h"

namespace qwench {
namespace {

/// llama_ftype (https://github.com/ggml-org/llama.cpp/blob/master/include/llama.h), of types that can be
/// read.
constexpr std::pair<int64_t, const char*> kFileTypes[] = {
    {0, "F32"},     {1, "F16"},     {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},
    {8, "Q5_0"},    {9, "Q5_1"},    {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},
    {13, "Q3_K_L"}, {14, "Q4_K_S"}, {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},
    {18, "Q6_K"},   {21, "Q2_K_S"}, {25, "IQ4_NL"}, {32, "BF16"}};

DType type_of_most_bytes(const Checkpoint& checkpoint) {
  std::array<uint64_t, kDTypeCount> bytes{};
  for (const TensorView& tensor : checkpoint.tensors())
    bytes.at(static_cast<size_t>(tensor.dtype)) += tensor.bytes.size();
  return static_cast<DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

std::optional<int64_t> file_type(const GgufFile& gguf) {
  try {
    return gguf.integer("general.file_type");
  } catch (const Error&) {
    return std::nullopt;  // of another type: it is only about names
  }
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

}  // namespace

std::string quantization_name(const Checkpoint& checkpoint) {
  if (const GgufFile* gguf = checkpoint.gguf()) {
    const std::optional<int64_t> said = file_type(*gguf);
    for (const auto& [number, name] : kFileTypes) {
      if (said == number) return name;
    }
  }
  return upper(name(type_of_most_bytes(checkpoint)));
}

}  // namespace qwench
