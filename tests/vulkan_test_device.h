#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string>

#include "backend/device.h"
#include "qwench/error.h"

namespace qwench::test {

/// Set where a driver is loaded: some keep memory that they lose sight of, which is theirs to repair.
inline bool driver_was_loaded = false;

}  // namespace qwench::test

#if defined(__SANITIZE_ADDRESS__) || defined(__clang__)
/// Asked by the leak sanitizer at the end (sanitizer/lsan_interface.h).
extern "C" __attribute__((used, weak)) int __lsan_is_turned_off() {
  return qwench::test::driver_was_loaded ? 1 : 0;
}
#endif

namespace qwench::test {

/// The device that tests run on: the one that QWENCH_TEST_DEVICE names ("vulkan:1"), else the first. Empty,
/// with a printed sentence, where there is none.
inline std::optional<DeviceInfo> vulkan_test_device() {
  try {
    driver_was_loaded = true;
    const char* named = std::getenv("QWENCH_TEST_DEVICE");
    return choose_device(named != nullptr ? named : "vulkan");
  } catch (const Error& error) {
    std::printf("Vulkan tests: not run: %s\n", error.what());
    return std::nullopt;
  }
}

}  // namespace qwench::test

/// Ends the test where there is no Vulkan device.
#define QWENCH_NEEDS_VULKAN(device)                       \
  const auto device = qwench::test::vulkan_test_device(); \
  if (!device) GTEST_SKIP() << "there is no Vulkan device here"
