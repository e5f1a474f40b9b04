#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qwench {

/// Instruction sets that the kernels were compiled for and this CPU has, best first, by Highway's names in
/// lower case: "amx" (AVX-512 and AMX), "avx3_dl", "avx3", "avx2", "sse4", "neon", ...
std::vector<std::string> available_isas();

/// The one in use.
std::string current_isa();

/// Makes all kernels use this one from now on; "" goes back to the best. Not while kernels run. Throws Error
/// (invalid_argument) that lists the available ones.
void set_isa(std::string_view name);

/// Throws Error (unsupported) where the CPU lacks the least that the kernels are compiled for: SSE4.2, AES
/// and PCLMUL on x86-64, NEON on 64-bit Arm.
void check_cpu();

/// check_cpu(), then set_isa(the environment's QWENCH_CPU) where that is set.
void set_isa_from_environment();

}  // namespace qwench
