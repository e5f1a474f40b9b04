#include "core/user_folders.h"

#include <cstdlib>

namespace qwench {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path cache_folder() {
  if (const std::string own = environment("QWENCH_CACHE"); !own.empty()) return own;
  if (const std::string xdg = environment("XDG_CACHE_HOME"); !xdg.empty())
    return std::filesystem::path(xdg) / "qwench";
  return std::filesystem::path(environment("HOME")) / ".cache" / "qwench";
}

}  // namespace qwench
