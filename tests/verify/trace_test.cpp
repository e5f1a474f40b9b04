#include "verify/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "qwench/error.h"
#include "verify/attention_map.h"
#include "verify/logit_lens.h"
#include "verify_files.h"

namespace qwench {
namespace {

using test::GoldenModel;
using testing::HasSubstr;

std::vector<TokenId> prompt_of(const GoldenModel& golden, size_t index) {
  return golden.json()["prompts"][index]["ids"].get<std::vector<TokenId>>();
}

struct Traced {
  TracingBackend* tracer = nullptr;
  std::unique_ptr<Subject> subject;

  explicit Traced(const std::string& golden, int positions) {
    SubjectOptions options;
    options.positions = positions;
    options.max_rows = positions;
    options.threads = 2;
    options.decorate = [this](std::unique_ptr<Backend> backend) {
      auto tracing = std::make_unique<TracingBackend>(std::move(backend));
      tracer = tracing.get();
      return tracing;
    };
    subject = std::make_unique<Subject>(Checkpoint::open(GoldenModel(golden).folder()), options);
  }
};

TEST(TracingBackend, ChangesNoBit) {
  const GoldenModel golden("qwen2-tiny-window");
  const std::vector<TokenId> ids = prompt_of(golden, 2);
  const auto plain = test::subject_of("qwen2-tiny-window", static_cast<int>(ids.size()));
  Traced traced("qwen2-tiny-window", static_cast<int>(ids.size()));
  traced.tracer->start(true);
  const SequenceInput input{ids, 0, static_cast<int>(ids.size()), plain->blocks(), true, true};
  plain->forward(std::span(&input, 1));
  traced.subject->forward(std::span(&input, 1));
  EXPECT_EQ(plain->logits(), traced.subject->logits());
  EXPECT_FALSE(traced.tracer->events().empty());
}

TEST(Trace, NamesEveryOperationOfALayerWithItsShapeAndBytes) {
  const GoldenModel golden("qwen3-tiny-f32");  // hidden 64, 4 heads on 2 of 32, intermediate 160
  const std::vector<TokenId> ids = prompt_of(golden, 1);
  ASSERT_EQ(ids.size(), 6U);
  Traced traced("qwen3-tiny-f32", 8);
  const std::vector<TraceStep> steps = trace_steps(*traced.subject, *traced.tracer, ids, 2, true);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].name, "prefill of 6 tokens");
  EXPECT_EQ(steps[1].name, "decode at position 6");
  EXPECT_EQ(steps[2].name, "decode at position 7");
  for (const TraceStep& step : steps) {
    for (int layer = 0; layer < 3; ++layer) {
      std::vector<std::string> names;
      for (const TraceEvent& event : step.events) {
        if (event.layer == layer) names.push_back(event.name);
      }
      EXPECT_THAT(names, testing::ElementsAre("input_layernorm", "q_proj + k_proj + v_proj", "q_norm + rope",
                                              "k_norm + rope", "store_kv", "attention", "o_proj", "add",
                                              "post_attention_layernorm", "gate_proj + up_proj", "silu_mul",
                                              "down_proj", "add"));
    }
    EXPECT_EQ(step.events.front().name, "embed_tokens");
    EXPECT_EQ(step.events.back().name, "argmax");
    EXPECT_EQ(step.events[step.events.size() - 2].name, "lm_head");
    double end = 0;
    for (const TraceEvent& event : step.events) {
      EXPECT_GE(event.start, end) << event.name;
      end = event.start + event.seconds;
    }
  }
  const auto event_of = [&](const TraceStep& step, const std::string& name) {
    for (const TraceEvent& event : step.events) {
      if (event.name == name) return event;
    }
    ADD_FAILURE() << name;
    return TraceEvent{};
  };
  const TraceEvent o_proj = event_of(steps[0], "o_proj");
  EXPECT_EQ(o_proj.shape, "[6, 128] -> [6, 64]");
  EXPECT_EQ(o_proj.bytes, 4U * (6 * 128 + 64 * 128 + 6 * 64));
  const TraceEvent attention = event_of(steps[1], "attention");
  EXPECT_EQ(attention.shape, "[1, 128] over 7 positions");
  EXPECT_EQ(attention.bytes, 4U * (128 + 2 * 7 * 2 * 32 + 128));
  double squares = 0;
  for (const float value : golden.tensor("p1.hidden.0")) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(event_of(steps[0], "embed_tokens").norm, std::sqrt(squares / (6 * 64)), 1e-6);
}

TEST(Trace, TotalsAddUp) {
  Traced traced("llama-tiny", 9);
  const auto steps = trace_steps(*traced.subject, *traced.tracer, std::vector<TokenId>{1, 2, 3}, 1, false);
  for (const TraceStep& step : steps) {
    double seconds = 0;
    int count = 0;
    for (const TraceTotal& total : totals(step)) {
      seconds += total.seconds;
      count += total.count;
    }
    EXPECT_NEAR(seconds, step.seconds(), 1e-12);
    EXPECT_EQ(count, static_cast<int>(step.events.size()));
  }
}

TEST(Trace, InChromesFormatEveryEventIsCompleteAndLiesInItsStep) {
  Traced traced("qwen2-tiny-f16", 9);
  const auto steps = trace_steps(*traced.subject, *traced.tracer, std::vector<TokenId>{1, 2, 3}, 1, true);
  const Json trace = chrome_trace(steps, "a model");
  ASSERT_TRUE(trace["traceEvents"].is_array());
  std::vector<std::pair<double, double>> outer;
  size_t operations = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    ASSERT_EQ(event["ph"], "X");
    const double begin = event["ts"];
    const double end = begin + event["dur"].get<double>();
    EXPECT_GE(begin, 0);
    EXPECT_GE(end, begin);
    if (event["cat"] == "steps") {
      outer.emplace_back(begin, end);
      continue;
    }
    EXPECT_GE(begin, outer.back().first - 1e-3);
    EXPECT_LE(end, outer.back().second + 1e-3);
    if (event["cat"] == "operations") {
      ++operations;
      EXPECT_TRUE(event["args"].contains("shape"));
    }
  }
  EXPECT_EQ(outer.size(), 2U);
  EXPECT_EQ(operations, steps[0].events.size() + steps[1].events.size());
}

TEST(LogitLens, AfterTheLastLayerItIsTheModelsOwnPrediction) {
  for (const std::string name : {"qwen3-tiny-f32", "qwen2-tiny-yarn", "llama-tiny"}) {
    const GoldenModel golden(name);
    for (size_t p = 0; p < 4; ++p) {
      const std::vector<TokenId> ids = prompt_of(golden, p);
      const auto subject = test::subject_of(name, static_cast<int>(ids.size()));
      const std::vector<LensRow> rows = logit_lens(*subject, ids, 5);
      ASSERT_EQ(static_cast<int>(rows.size()), subject->config().num_layers + 1);
      EXPECT_EQ(rows.front().place, "embed_tokens");
      EXPECT_EQ(rows.back().place, "layers.2");
      const Json& top = golden.json()["prompts"][p]["top5_last"];
      for (size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(rows.back().top[i].first, top[i]["id"].get<int>()) << name;
        EXPECT_NEAR(std::log(rows.back().top[i].second), top[i]["logprob"].get<double>(), 2e-4) << name;
      }
      EXPECT_NE(rows.front().top, rows.back().top);
    }
  }
}

TEST(AttentionMap, OfAllHeadsTimesTheValuesIsTheOfficialImplementationsOutput) {
  const GoldenModel golden("qwen3-tiny-f32");
  for (const size_t prompt : {1, 4}) {
    const std::vector<TokenId> ids = prompt_of(golden, prompt);
    const auto tokens = ids.size();
    const auto subject = test::subject_of("qwen3-tiny-f32", static_cast<int>(tokens));
    constexpr size_t kHeads = 4, kGroup = 2, kDim = 32, kHidden = 64;
    const std::string prefix = "p" + std::to_string(prompt) + ".l0.";
    const std::vector<float>& v = golden.tensor(prefix + "v");  // [tokens, 2 * 32]
    std::vector<double> mixed(tokens * kHeads * kDim);
    for (size_t head = 0; head < kHeads; ++head) {
      const AttentionMap map = attention_map(*subject, ids, 0, static_cast<int>(head));
      for (size_t row = 0; row < tokens; ++row) {
        double sum = 0;
        for (size_t column = 0; column < tokens; ++column) {
          const float weight = map.at(static_cast<int>(row), static_cast<int>(column));
          if (column > row) {
            EXPECT_EQ(weight, 0) << "the future is not seen";
          }
          sum += weight;
          for (size_t i = 0; i < kDim; ++i)
            mixed[(row * kHeads + head) * kDim + i] +=
                static_cast<double>(weight) * v[(column * 2 + head / kGroup) * kDim + i];
        }
        EXPECT_NEAR(sum, 1, 1e-6);
      }
    }
    const TensorView* o_proj = subject->checkpoint().find("model.layers.0.self_attn.o_proj.weight");
    ASSERT_NE(o_proj, nullptr);
    std::vector<float> weight(kHidden * kHeads * kDim);
    std::memcpy(weight.data(), o_proj->bytes.data(), o_proj->bytes.size());
    const std::vector<float>& want = golden.tensor(prefix + "attn_out");
    double worst = 0;
    for (size_t row = 0; row < tokens; ++row) {
      for (size_t n = 0; n < kHidden; ++n) {
        double sum = 0;
        for (size_t k = 0; k < kHeads * kDim; ++k)
          sum += mixed[row * kHeads * kDim + k] * weight[n * kHeads * kDim + k];
        worst = std::max(worst, std::abs(sum - want[row * kHidden + n]));
      }
    }
    EXPECT_LT(worst, 1e-4);
  }
}

TEST(AttentionMap, AWindowHidesWhatIsFarther) {
  const GoldenModel golden("qwen2-tiny-window");  // layers from 2 on see 16 positions
  const std::vector<TokenId> ids = prompt_of(golden, 3);
  const auto subject = test::subject_of("qwen2-tiny-window", static_cast<int>(ids.size()));
  const AttentionMap wide = attention_map(*subject, ids, 0, 1);
  const AttentionMap narrow = attention_map(*subject, ids, 2, 1);
  EXPECT_GT(wide.at(40, 0), 0);
  EXPECT_EQ(narrow.at(40, 24), 0);
  EXPECT_GT(narrow.at(40, 25), 0);
}

TEST(AttentionMap, ALayerOrHeadThatIsNotThereIsRefused) {
  const auto subject = test::subject_of("qwen3-tiny-f32", 4);
  const std::vector<TokenId> ids{1, 2};
  EXPECT_THROW(attention_map(*subject, ids, 3, 0), Error);
  EXPECT_THROW(attention_map(*subject, ids, 0, 4), Error);
  EXPECT_THROW(attention_map(*subject, ids, -1, 0), Error);
}

TEST(AttentionSvg, IsOneElementWithEscapedLabelsAndACellForEachPair) {
  AttentionMap map{1, 2, 3, {1, 0, 0, 0.25F, 0.75F, 0, 0.5F, 0.25F, 0.25F}};
  const std::vector<std::string> labels{"<s>", "a & b", "\x01\xFF"};
  const std::string svg = attention_svg(map, labels, "layer <1>");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("&lt;s&gt;"));
  EXPECT_THAT(svg, HasSubstr("a\u00B7&amp;\u00B7b"));
  EXPECT_THAT(svg, HasSubstr("layer &lt;1&gt;"));
  EXPECT_THAT(svg, testing::Not(HasSubstr("\x01")));
  size_t cells = 0;
  for (size_t at = svg.find("fill-opacity"); at != std::string::npos; at = svg.find("fill-opacity", at + 1))
    ++cells;
  EXPECT_EQ(cells, 6U);
  EXPECT_THAT(svg, HasSubstr("1 → 1: 0.7500"));
  map.size = 257;
  EXPECT_THROW(attention_svg(map, labels, ""), Error);
}

}  // namespace
}  // namespace qwench
