// Encoding of whole documents and loading of tokenizers.
//
//   tokenizer_bench [google-benchmark flags]
//   tokenizer_bench --measure TOKENIZER_FOLDER ROUNDS FILE...   one line a file: name, bytes, ids, best and
//   median seconds
//
// bench/tokenizer.py runs the second form in turn with Hugging Face tokenizers.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "qwench/error.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace {

using qwench::SpecialTokens;
using qwench::Tokenizer;

/// Processor time of this process: what else runs on the machine must not decide the comparison.
double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int measure(const std::string& folder, int rounds, const std::vector<std::string>& files) {
  const double start = seconds();
  const auto tokenizer = Tokenizer::from_folder(folder);
  const double loading = seconds() - start;
  std::printf("load - - %.6f %.6f\n", loading, loading);
  for (const std::string& file : files) {
    const std::string text = qwench::read_text_file(file);
    std::vector<double> times;
    size_t ids = 0;
    for (int i = 0; i < rounds; ++i) {
      const double begin = seconds();
      ids = tokenizer->encode(text, SpecialTokens::all).size();
      times.push_back(seconds() - begin);
    }
    std::sort(times.begin(), times.end());
    std::printf("%s %zu %zu %.6f %.6f\n", std::filesystem::path(file).stem().c_str(), text.size(), ids,
                times.front(), times[times.size() / 2]);
  }
  return 0;
}

std::filesystem::path cache() {
  if (const char* set = std::getenv("QWENCH_CACHE")) return set;
  if (const char* set = std::getenv("XDG_CACHE_HOME")) return std::filesystem::path(set) / "qwench";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : ".") / ".cache" / "qwench";
}

/// A text of the kind that a name stands for; 64 KB.
std::string sample(const std::string& kind) {
  const std::string_view part =
      kind == "english" ? "The engineer measured 40 samples before sunrise; nobody knew why, but it's done. "
      : kind == "chinese"
          ? "\xE4\xBB\x8A\xE5\xA4\xA9\xE5\xA4\xA9\xE6\xB0\x94\xE4\xB8\x8D\xE9\x94\x99\xEF\xBC\x8C"
            "\xE6\x88\x91\xE4\xBB\xAC\xE5\x8E\xBB\xE5\x85\xAC\xE5\x9B\xAD\xE3\x80\x82\n"
          : "for (size_t i = 0; i < tokens.size(); ++i) {\n    out[i] = f(x_1, 2024);\n}\n";
  std::string out;
  while (out.size() < 65536) out += part;
  return out;
}

void encode(benchmark::State& state, const std::string& tokenizer_name, const std::string& kind) {
  const auto tokenizer = Tokenizer::from_folder(cache() / "tokenizers" / tokenizer_name);
  const std::string text = sample(kind);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->encode(text, SpecialTokens::all));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(text.size()));
}

void load(benchmark::State& state, const std::string& tokenizer_name) {
  for (auto _ : state)
    benchmark::DoNotOptimize(Tokenizer::from_folder(cache() / "tokenizers" / tokenizer_name));
}

void decode(benchmark::State& state, const std::string& tokenizer_name) {
  const auto tokenizer = Tokenizer::from_folder(cache() / "tokenizers" / tokenizer_name);
  const auto ids = tokenizer->encode(sample("english"), SpecialTokens::all);
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->decode(ids, false));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(ids.size()));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 4 && std::string_view(argv[1]) == "--measure") {
      return measure(argv[2], std::max(1, std::atoi(argv[3])),
                     std::vector<std::string>(argv + 4, argv + argc));
    }
    benchmark::Initialize(&argc, argv);
    for (const std::string name : {"qwen3", "smollm2"}) {
      for (const std::string kind : {"english", "chinese", "code"}) {
        benchmark::RegisterBenchmark(("encode/" + name + "/" + kind).c_str(),
                                     [=](benchmark::State& state) { encode(state, name, kind); });
      }
      benchmark::RegisterBenchmark(("decode/" + name).c_str(),
                                   [=](benchmark::State& state) { decode(state, name); });
      benchmark::RegisterBenchmark(("load/" + name).c_str(),
                                   [=](benchmark::State& state) { load(state, name); });
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  } catch (const qwench::Error& error) {
    std::fprintf(stderr, "tokenizer_bench: %s\n", error.what());
    return 1;
  }
}
