// What a token's mask costs: one JSON text of a schema, token by token, over a real vocabulary.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "grammar/grammar_cache.h"
#include "grammar/json_schema.h"
#include "grammar/token_masks.h"
#include "text/tokenizer.h"

namespace {

using namespace qwench;

/// Milliseconds of this thread's processor time: others that load the machine do not count.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

constexpr const char* kSchema = R"({"type":"object","properties":{
  "name":{"type":"string"},"summary":{"type":"string","maxLength":400},"tags":{"type":"array","items":{"type":"string"}},
  "kind":{"enum":["note","task","event"]},"count":{"type":"integer","minimum":0,"maximum":5000},
  "when":{"type":"string","format":"date-time"},
  "children":{"type":"array","items":{"$ref":"#"}}},"required":["name","summary","kind"],"additionalProperties":false})";

constexpr const char* kText =
    R"({"name": "The quick brown fox — 敏捷的棕色狐狸", "summary": "A sentence that holds every letter of the alphabet, used to show typefaces and to test keyboards since the telegraph.", "tags": ["pangram", "typing", "fonts"], "kind": "note", "count": 1234, "when": "2024-02-29T12:30:00Z", "children": [{"name": "Jackdaws love my big sphinx of quartz", "summary": "Another one, \"shorter\", with an escape.\n", "kind": "task", "children": [{"name": "x", "summary": "y", "kind": "event"}]}]})";

struct Model {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const TokenTrie> trie;
};

const Model& model() {
  static const Model loaded = [] {
    const char* folder = std::getenv("QWENCH_BENCH_TOKENIZER");
    if (folder == nullptr) {
      std::fputs("set QWENCH_BENCH_TOKENIZER to a folder with a tokenizer.json\n", stderr);
      std::exit(2);
    }
    Model made;
    made.tokenizer = Tokenizer::from_folder(folder);
    const double begin = now();
    made.trie = std::make_shared<const TokenTrie>(TokenTrie::of(*made.tokenizer, made.tokenizer->size()));
    std::fprintf(stderr, "trie of %d ids, %zu nodes: %.1f ms\n", made.tokenizer->size(),
                 made.trie->nodes().size(), now() - begin);
    return made;
  }();
  return loaded;
}

/// One text under one grammar: `first` with nothing kept yet, else as later requests with the same grammar.
void run(benchmark::State& state, const std::shared_ptr<const Grammar>& grammar, const std::string& text,
         bool first) {
  const std::vector<TokenId> ids = model().tokenizer->encode(text, SpecialTokens::none);
  const auto none = [](const std::string&) { return std::optional<TokenId>(); };
  auto masks = std::make_unique<TokenMasks>(grammar, model().trie, none);
  double slowest = 0;
  int64_t tokens = 0;
  for (auto _ : state) {
    if (first) masks = std::make_unique<TokenMasks>(grammar, model().trie, none);
    TokenMasks::Position position = masks->start();
    for (const TokenId id : ids) {
      const double begin = now();
      const auto mask = masks->mask(position);
      if (!mask->has(id) || !masks->accept(position, id)) {
        state.SkipWithError("the text is not of the grammar");
        return;
      }
      slowest = std::max(slowest, now() - begin);
      ++tokens;
    }
  }
  state.counters["slowest_ms"] = slowest;
  state.counters["us_per_token"] = benchmark::Counter(
      static_cast<double>(tokens) * 1e-6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_SchemaFirst(benchmark::State& state) {
  run(state, compile_json_schema(std::string_view(kSchema)), kText, true);
}
void BM_SchemaAgain(benchmark::State& state) {
  run(state, compile_json_schema(std::string_view(kSchema)), kText, false);
}
void BM_ObjectFirst(benchmark::State& state) { run(state, compile_json_object(), kText, true); }
void BM_Compile(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(compile_json_schema(std::string_view(kSchema)));
}

BENCHMARK(BM_SchemaFirst)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_SchemaAgain)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ObjectFirst)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Compile)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
