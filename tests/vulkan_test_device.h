#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <string>

#include "backend/device.h"
#include "qwench/error.h"

namespace qwench::test {

/// The device that tests run on: the one that QWENCH_TEST_DEVICE names ("vulkan:1"), else the first. Empty,
/// with a printed sentence, where there is none.
inline std::optional<DeviceInfo> vulkan_test_device() {
  try {
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
