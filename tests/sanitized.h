#pragma once

namespace qwench::test {

/// Whether this is a build with the address sanitizer: several times slower, and it keeps what was freed.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace qwench::test
