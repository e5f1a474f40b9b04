#include "text/gguf_tokenizer_pre.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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

// DeepSeek LLM.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼ)"
    R"(ℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr std::string_view kDeepSeekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";

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
                       : fmt::format("is \"{}\"", kind.substr(0, 100))));
}

}  // namespace qwench
