#include <cstddef>
#include <cstdint>
#include <string_view>

#include "checkpoint/expected_tensors.h"
#include "checkpoint/generation_config.h"
#include "checkpoint/model_config.h"
#include "core/json.h"
#include "qwench/error.h"

/// Any text gives a config that its own checks call sound, or an Error: config.json and
/// generation_config.json.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kLimit = 1 << 16;
  if (size > kLimit) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const qwench::Json json = qwench::parse_json(text, "fuzz");
    try {
      qwench::GenerationConfig::from_json(json, "fuzz");
    } catch (const qwench::Error&) {
    }
    const qwench::ModelConfig config = qwench::ModelConfig::from_json(json, "fuzz");
    if (config.num_layers <= 8) qwench::expected_tensors(config);
  } catch (const qwench::Error&) {
  }
  return 0;
}
