#pragma once

namespace qwench {

/// Whether this CPU multiplies tiles of bf16 and of bytes (Intel's Advanced Matrix Extensions) and the system
/// lets this process do it, which is asked for at the first call. Thread-safe.
bool amx_available();

/// Whether kernels use them: where they are available and set_isa has not chosen another instruction set.
bool amx_in_use();

/// Called by set_isa; not while kernels run.
void use_amx(bool use);

}  // namespace qwench
