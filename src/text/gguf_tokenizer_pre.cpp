#include "text/gguf_tokenizer_pre.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "checkpoint/printable.h"
#include "qwench/error.h"
#include "text/pre_tokenizer_scan.h"

namespace qwench {
namespace {

// The patterns are those of the tokenizer.json that each kind was converted from.

// Qwen3.5: as Qwen2, with marks among the letters.
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// GPT-4o (o200k_base): words by case.
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kLineEnds = R"([\r\n])";
constexpr std::string_view kEastAsian = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";

// DeepSeek LLM. As code points: some of them are not the same after NFC.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293})"
    R"(\x{295}-\x{2af}\x{370}-\x{373}\x{376}-\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a})"
    R"(\x{38c}\x{38e}-\x{3a1}\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556})"
    R"(\x{10a0}-\x{10c5}\x{13a0}-\x{13f5}\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf})"
    R"(\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77}\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d})"
    R"(\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d}\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d})"
    R"(\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc}\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3})"
    R"(\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec}\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107})"
    R"(\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d}\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d})"
    R"(\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f}\x{2145}-\x{2149}\x{214e}\x{2183}-\x{2184})"
    R"(\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee}\x{2cf2}-\x{2cf3}\x{a640}-\x{a66d})"
    R"(\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787}\x{a78b}-\x{a78e}\x{ab70}-\x{abbf})"
    R"(\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a}\x{ff41}-\x{ff5a}\x{10400}-\x{1044f})"
    R"(\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df})"
    R"(\x{1e900}-\x{1e943})"
    R"(]+)";
constexpr std::string_view kDeepSeekPunctuation =
    R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)";

// DeepSeek V3 and R1.
constexpr std::string_view kDeepSeek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Json split(std::string_view regex) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", std::string(regex)}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

Json digits(bool individual) { return {{"type", "Digits"}, {"individual_digits", individual}}; }

Json byte_level(bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

/// These steps, then bytes.
Json sequence(Json steps, bool gpt2_words = false) {
  steps.push_back(byte_level(gpt2_words));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

// One of each treatment: what a converted file is called.
constexpr std::string_view kKinds[] = {"qwen2",  "qwen35",       "llama-bpe",      "smollm",     "gpt-2",
                                       "gpt-4o", "deepseek-llm", "deepseek-coder", "deepseek-v3"};

/// What matters of a pre-tokenizer or normalizer, as a flat list of steps.
void flatten(const Json& part, std::vector<std::string>& steps) {
  if (part.is_null()) return;
  const std::string type = part.value("type", "");
  if (type == "Sequence") {
    for (const char* key : {"pretokenizers", "normalizers"}) {
      if (!part.contains(key)) continue;
      for (const Json& step : part[key]) flatten(step, steps);
    }
  } else if (type == "Split") {
    steps.push_back(fmt::format("split {} {} {}", part.value("behavior", ""), part.value("invert", false),
                                part.value("pattern", Json()).dump()));
  } else if (type == "Digits") {
    steps.push_back(fmt::format("digits {}", part.value("individual_digits", false)));
  } else if (type == "ByteLevel") {
    // Words are cut before, or here.
    if (part.value("add_prefix_space", true)) steps.push_back("space");
    if (part.value("use_regex", true)) steps.push_back("words");
    steps.push_back("bytes");
  } else {
    steps.push_back(part.dump());
  }
}

std::vector<std::string> steps_of(const Json& normalizer, const Json& pre_tokenizer) {
  std::vector<std::string> steps;
  flatten(normalizer, steps);
  flatten(pre_tokenizer, steps);
  return steps;
}

bool is_one_of(std::string_view kind, std::initializer_list<std::string_view> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

GgufPreTokenizer gguf_pre_tokenizer(std::string_view kind, const std::string& what) {
  const Json none = nullptr;
  const Json nfc = {{"type", "NFC"}};
  if (is_one_of(kind, {"qwen2", "deepseek-r1-qwen"})) {
    return {nfc, sequence(Json::array({split(pattern_text(KnownPattern::qwen2))}))};
  }
  if (kind == "qwen35") return {nfc, sequence(Json::array({split(kQwen35)}))};
  if (is_one_of(kind, {"gpt-2", "phi-2", "mpt", "olmo"})) return {none, sequence(Json::array(), true)};
  if (is_one_of(kind, {"smollm", "starcoder", "refact", "command-r"})) {
    return {none, sequence(Json::array({digits(true)}), true)};
  }
  if (is_one_of(kind, {"llama-bpe", "llama3", "llama-v3"})) {
    return {none, sequence(Json::array({split(pattern_text(KnownPattern::llama3))})), true, true};
  }
  if (is_one_of(kind, {"gpt-4o", "llama4"})) return {none, sequence(Json::array({split(kGpt4o)}))};
  if (kind == "deepseek-llm") {
    return {none,
            sequence(Json::array({split(kLineEnds), split(kDeepSeekLetters), split(kDeepSeekPunctuation),
                                  split(R"(\s+$)"), split(kEastAsian), digits(false)}))};
  }
  if (kind == "deepseek-coder") {
    return {none, sequence(Json::array({split(kLineEnds), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"),
                                        split(kEastAsian), digits(true)}))};
  }
  if (kind == "deepseek-v3") {
    return {none, sequence(Json::array({split(R"(\p{N}{1,3})"),
                                        split(R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)"),
                                        split(kDeepSeek3Words)}))};
  }
  throw Error(
      ErrorKind::unsupported,
      fmt::format(
          "{}: tokenizer.ggml.pre {}; supported are qwen2, deepseek-r1-qwen, qwen35, gpt-2, phi-2, mpt, "
          "olmo, "
          "smollm, starcoder, refact, command-r, llama-bpe, llama3, llama-v3, gpt-4o, llama4, deepseek-llm, "
          "deepseek-coder and deepseek-v3",
          what,
          kind.empty() ? "is missing, so how to cut the text is not known"
                       : fmt::format("is {}", printable(kind))));
}

std::optional<std::string_view> gguf_pre_tokenizer_name(const Json& normalizer, const Json& pre_tokenizer,
                                                        bool ignore_merges) {
  const std::vector<std::string> wanted = steps_of(normalizer, pre_tokenizer);
  for (const std::string_view kind : kKinds) {
    const GgufPreTokenizer known = gguf_pre_tokenizer(kind, "");
    if (known.ignore_merges == ignore_merges && steps_of(known.normalizer, known.pre_tokenizer) == wanted)
      return kind;
  }
  return std::nullopt;
}

std::string known_gguf_pre_tokenizers() { return fmt::format("{}", fmt::join(kKinds, ", ")); }

}  // namespace qwench
