#include "server/ollama_common.h"

#include <fmt/format.h>

#include <ctime>

#include "server/field_schemas.h"

namespace qwench::server {

std::string ollama_model_name(const std::string& name) {
  constexpr std::string_view kTag = ":latest";
  return name.ends_with(kTag) ? name.substr(0, name.size() - kTag.size()) : name;
}

int64_t nanoseconds_of(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

std::string utc_time(int64_t seconds_since_epoch) {
  const std::time_t time = seconds_since_epoch;
  std::tm parts = {};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string ollama_count(int64_t count) {
  const auto scaled = [&](int64_t unit, int digits, char letter) {
    return fmt::format("{:.{}f}{}", static_cast<double>(count) / static_cast<double>(unit),
                       count % unit == 0 ? 0 : digits, letter);
  };
  if (count >= 1'000'000'000) return scaled(1'000'000'000, 1, 'B');
  if (count >= 1'000'000) return scaled(1'000'000, 2, 'M');
  return count >= 1000 ? scaled(1000, 0, 'K') : std::to_string(count);
}

Json ollama_keep_alive_field() {
  return fields::without_effect({"string", "integer", "number", "null"},
                                "Without effect: the model is loaded as long as the server runs.");
}

}  // namespace qwench::server
