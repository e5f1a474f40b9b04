#include "server/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace qwench::server {

namespace {

uint64_t random_bits() {
  static thread_local std::mt19937_64 random{std::random_device()()};
  return random();
}

}  // namespace

std::string new_request_id() { return fmt::format("{:016x}{:016x}", random_bits(), random_bits()); }

std::string new_call_id() { return fmt::format("call_{:016x}{:08x}", random_bits(), random_bits() >> 32U); }

bool is_request_id(std::string_view text) {
  constexpr size_t kLongest = 128;
  return !text.empty() && text.size() <= kLongest && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

}  // namespace qwench::server
