#include "kernels/isa.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>

#include "kernels/amx.h"
#include "kernels/vnni_targets.h"
//
#include "hwy/highway.h"
#include "hwy/targets.h"
#include "qwench/error.h"

namespace qwench {
namespace {

std::string lower_name(int64_t target) {
  std::string name = hwy::TargetName(target);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

// What the CPU has, whatever was chosen.
std::vector<int64_t> targets_of_this_cpu() {
  static const std::vector<int64_t> targets = [] {
    std::vector<int64_t> found = hwy::SupportedAndGeneratedTargets();
    if (found.empty() || found.back() != HWY_STATIC_TARGET) found.push_back(HWY_STATIC_TARGET);
    return found;
  }();
  return targets;
}

// AVX-512 with the instructions of AMX beside it: no target of Highway's.
constexpr std::string_view kAmx = "amx";

bool has_amx_kernels(int64_t target) { return target == HWY_AVX3_DL && amx_available(); }

}  // namespace

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  if (has_amx_kernels(targets_of_this_cpu().front())) names.emplace_back(kAmx);
  for (const int64_t target : targets_of_this_cpu()) names.push_back(lower_name(target));
  return names;
}

std::string current_isa() {
  targets_of_this_cpu();
  const std::vector<int64_t> allowed = hwy::SupportedAndGeneratedTargets();
  const int64_t target = allowed.empty() ? HWY_STATIC_TARGET : allowed.front();
  return has_amx_kernels(target) && amx_in_use() ? std::string(kAmx) : lower_name(target);
}

void set_isa(std::string_view name) {
  int64_t chosen = 0;
  const bool with_amx = name == kAmx || name.empty();
  for (const int64_t target : targets_of_this_cpu()) {
    if (lower_name(target) == name || (name == kAmx && has_amx_kernels(target))) chosen = target;
  }
  if (chosen == 0 && !name.empty()) {
    std::string there;
    for (const std::string& isa : available_isas()) there += there.empty() ? isa : ", " + isa;
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the instruction set \"{}\" is not available; this CPU has {}", name, there));
  }
  use_amx(with_amx);
  if (chosen == HWY_AVX3_DL) chosen |= HWY_AVX3;  // where there are no kernels of its own (vnni_targets.h)
  hwy::SetSupportedTargetsForTest(chosen);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void check_cpu() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("aes") ||
      !__builtin_cpu_supports("pclmul")) {
    throw Error(
        ErrorKind::unsupported,
        "this CPU has no SSE4.2, AES and PCLMUL instructions, which the kernels need; in a virtual machine, "
        "give it the host's CPU (qemu: -cpu host)");
  }
#endif
}

void set_isa_from_environment() {
  check_cpu();
  if (const char* name = std::getenv("QWENCH_CPU"); name != nullptr && *name != '\0') set_isa(name);
}

}  // namespace qwench
