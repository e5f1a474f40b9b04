#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/expected_tensors.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "qwench/error.h"

namespace {

/// Every access to every key, as readers of metadata do it.
void read_all(const qwench::GgufFile& file) {
  for (const std::string_view key : file.keys()) {
    const auto attempt = [&](auto&& read) {
      try {
        read();
      } catch (const qwench::Error&) {
      }
    };
    attempt([&] { file.string(key); });
    attempt([&] { file.integer(key); });
    attempt([&] { file.number(key); });
    attempt([&] { file.boolean(key); });
    attempt([&] { file.strings(key); });
    attempt([&] { file.integers(key); });
    attempt([&] { file.floats(key); });
  }
  const std::byte* end = nullptr;
  for (const qwench::GgufTensor& tensor : file.tensors()) {
    if (!tensor.bytes.empty()) end = &tensor.bytes.back();
  }
  if (end != nullptr && std::to_integer<int>(*end) < 0) std::abort();
}

}  // namespace

/// Any bytes give a file whose every value and tensor can be read, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto file = qwench::GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz");
    read_all(file);
    qwench::GenerationConfig::from_gguf(file);
    qwench::expected_tensors(qwench::ModelConfig::from_gguf(file));
  } catch (const qwench::Error&) {
  }
  return 0;
}
