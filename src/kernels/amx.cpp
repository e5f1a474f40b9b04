#include "kernels/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace qwench {
namespace {

#if defined(__x86_64__) && defined(__linux__)
bool cpu_has_tiles() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  // CPUID.7.0:EDX of Intel's manual: AMX-BF16, AMX-TILE, AMX-INT8.
  return (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0 && (d >> 25 & 1) != 0;
}

// Linux gives a process the state of tiles, 8 KB a thread, on demand (Documentation/arch/x86/xstate.rst).
bool system_permits_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool find_amx() { return cpu_has_tiles() && system_permits_tiles(); }
#else
bool find_amx() { return false; }
#endif

bool is_in_use = true;

}  // namespace

bool amx_available() {
  static const bool available = find_amx();
  return available;
}

bool amx_in_use() { return is_in_use && amx_available(); }

void use_amx(bool use) { is_in_use = use; }

}  // namespace qwench
