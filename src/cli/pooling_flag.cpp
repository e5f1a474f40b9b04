#include "cli/pooling_flag.h"

#include <fmt/format.h>

#include "cli/command_line.h"
#include "engine/embedding.h"

namespace qwench::cli {

std::optional<Pooling> pooling_flag(const std::string& word) {
  if (word.empty()) return std::nullopt;
  const std::optional<Pooling> pooling = pooling_named(word);
  if (!pooling) throw UsageError(fmt::format("--pooling {}: expected mean or last", word));
  return pooling;
}

}  // namespace qwench::cli
