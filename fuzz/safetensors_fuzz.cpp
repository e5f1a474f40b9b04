#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "checkpoint/safetensors.h"
#include "qwench/error.h"

/// Any bytes give a list of tensors that lie one after the other to the end of the file, or an Error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    size_t covered = 0;
    for (const auto& entry : qwench::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz"))
      covered += entry.bytes.size();
    if (covered > size) std::abort();
  } catch (const qwench::Error&) {
  }
  return 0;
}
