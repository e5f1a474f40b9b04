#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/inspect.h"
#include "core/log.h"
#include "core/memory.h"
#include "qwench/error.h"
#include "sanitized.h"

namespace qwench::cli {
namespace {

namespace fs = std::filesystem;

fs::path malformed(const std::string& name) { return fs::path(QWENCH_TEST_DATA) / "malformed" / name; }

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Changes every byte of a file's beginning, and every 13th after that (every 47th under sanitizers), in one
/// of five ways; all bytes in all five with QWENCH_MUTATE_ALL set. `file` lies in the folder `name`; what is
/// checked is `target` there.
void flip_every_byte(const std::string& name, const std::string& file, const std::string& target) {
  set_log_level(LogLevel::silent);
  const fs::path folder = fs::path(testing::TempDir()) / ("mutation_" + file);
  fs::remove_all(folder);
  fs::create_directories(folder);
  const bool alone = file == target;
  for (const auto& entry : fs::directory_iterator(malformed(name))) {
    if (entry.is_regular_file() && (!alone || entry.path().filename() == file))
      write(folder / entry.path().filename(), read(entry.path()));
  }
  const std::string sound = read(folder / file);
  ASSERT_GT(sound.size(), 100U);
  const bool all = std::getenv("QWENCH_MUTATE_ALL") != nullptr;
  size_t tried = 0;
  size_t refused = 0;
  const uint64_t before = peak_memory();
  size_t step = 1;
  for (size_t i = 0; i < sound.size(); i += step) {
    if (!all) step = test::kSanitized ? 47 : i < 2000 ? 1 : 13;
    const std::array<char, 5> changes{static_cast<char>(sound[i] ^ 1), '\xff', '\0', '"',
                                      static_cast<char>(sound[i] ^ 0x80)};
    for (size_t k = 0; k < changes.size(); ++k) {
      const char changed = changes[k];
      if (!all && k != i % changes.size()) continue;
      if (changed == sound[i]) continue;
      std::string damaged = sound;
      damaged[i] = changed;
      write(folder / file, damaged);
      const auto begin = std::chrono::steady_clock::now();
      try {
        const CheckResult result = check_path(folder / target);
        refused += result.problems.empty() ? 0 : 1;
        EXPECT_EQ(result.summary.find('\n'), std::string::npos) << result.summary;
      } catch (const Error& error) {
        ++refused;
        const std::string sentence = error.what();
        EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
        EXPECT_GT(sentence.size(), 15U) << sentence;
      }
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(seconds.count(), 5.0) << file << " byte " << i;
      ++tried;
    }
  }
  std::printf("%s: %zu changes tried, %zu refused\n", file.c_str(), tried, refused);
  EXPECT_GT(refused, tried / 20);
  if (!test::kSanitized) {
    EXPECT_LT(peak_memory() - before, 4 * sound.size() + (uint64_t{64} << 20));
  }
}

TEST(Mutation, Safetensors) { flip_every_byte("safetensors", "ok.safetensors", "ok.safetensors"); }
TEST(Mutation, Gguf) { flip_every_byte("gguf", "ok.gguf", "ok.gguf"); }
TEST(Mutation, Config) { flip_every_byte("checkpoint/ok", "config.json", ""); }
TEST(Mutation, ModelWeights) { flip_every_byte("checkpoint/ok", "model.safetensors", ""); }
TEST(Mutation, Index) { flip_every_byte("checkpoint/ok-sharded", "model.safetensors.index.json", ""); }
TEST(Mutation, TokenizerJson) { flip_every_byte("tokenizer/ok", "tokenizer.json", "tokenizer.json"); }

}  // namespace
}  // namespace qwench::cli
