#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "qwench/sampling.h"

namespace qwench::test {

inline std::filesystem::path tokenizer_data(const std::string& name) {
  return std::filesystem::path(QWENCH_TEST_DATA) / "tokenizer" / name;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<nlohmann::json> read_jsonl(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << "cannot read " << path;
  std::vector<nlohmann::json> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(nlohmann::json::parse(line));
  return rows;
}

/// A file that ./dev fetch-models puts into the cache. Fails the test when it is not there.
inline std::filesystem::path cached(const std::string& name) {
  std::filesystem::path root;
  if (const char* cache = std::getenv("QWENCH_CACHE")) {
    root = cache;
  } else if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg) {
    root = std::filesystem::path(xdg) / "qwench";
  } else if (const char* home = std::getenv("HOME")) {
    root = std::filesystem::path(home) / ".cache" / "qwench";
  }
  EXPECT_TRUE(std::filesystem::exists(root / name)) << (root / name) << " is missing; run ./dev fetch-models";
  return root / name;
}

/// Where two lists of ids part, for messages.
inline std::string difference(const std::vector<TokenId>& found, const std::vector<TokenId>& expected) {
  size_t i = 0;
  while (i < found.size() && i < expected.size() && found[i] == expected[i]) ++i;
  const auto show = [&](const std::vector<TokenId>& ids) {
    std::string out;
    for (size_t k = i; k < std::min(ids.size(), i + 6); ++k) out += std::to_string(ids[k]) + " ";
    return out;
  };
  return "ids part at " + std::to_string(i) + ": found " + show(found) + "expected " + show(expected);
}

}  // namespace qwench::test
