#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "core/utf8.h"
#include "qwench/error.h"
#include "sanitized.h"
#include "text/pre_tokenizer_scan.h"
#include "text/unicode_classes.h"
#include "text/unicode_normalization.h"
#include "text/unicode_regex.h"
#include "tokenizer_files.h"

namespace qwench::unicode {
namespace {

// Under sanitizers every eleventh character: the plain build looks at all.
constexpr char32_t kStep = test::kSanitized ? 11 : 1;

CodePointSet golden_set(const nlohmann::json& golden, const char* name) {
  std::vector<Range> ranges;
  for (const auto& r : golden.at(name)) ranges.push_back({r[0].get<uint32_t>(), r[1].get<uint32_t>()});
  EXPECT_FALSE(ranges.empty()) << name;
  return CodePointSet::of_ranges(std::move(ranges));
}

std::string normalized(NormalizationForm form, const std::string& text) {
  std::string out;
  for (size_t done = 0;;) {
    const ByteSpan part = next_unstable_part(form, text, done);
    out.append(text, done, part.begin - done);
    if (part.begin == text.size()) return out;
    append_normalized(form, std::string_view(text).substr(part.begin, part.end - part.begin), out);
    done = part.end;
  }
}

std::vector<std::string> matches_of(const std::string& pattern, const std::string& text) {
  std::vector<ByteSpan> spans;
  Regex::compile(pattern, "test")->find_all(text, spans);
  std::vector<std::string> out;
  for (const ByteSpan s : spans) out.push_back(text.substr(s.begin, s.end - s.begin));
  return out;
}

TEST(TokenizerUnicode, ClassesAreThoseOfTheReference) {
  const auto golden = nlohmann::json::parse(test::read_file(test::tokenizer_data("unicode_classes.json")));
  EXPECT_EQ(*property_set("L"), golden_set(golden, "L"));
  EXPECT_EQ(*property_set("N"), golden_set(golden, "N"));
  EXPECT_EQ(named_set("white_space"), golden_set(golden, "s"));
  EXPECT_EQ(named_set("numeric"), golden_set(golden, "digits"));
  const CodePointSet letters = golden_set(golden, "L");
  const CodePointSet numbers = golden_set(golden, "N");
  const CodePointSet spaces = golden_set(golden, "s");
  for (char32_t c = 0; c <= kLastCodePoint; c += kStep) {
    const uint16_t p = property_table()[c];
    ASSERT_EQ(is_letter(p), letters.contains(c)) << std::hex << static_cast<uint32_t>(c);
    ASSERT_EQ(is_number(p), numbers.contains(c)) << std::hex << static_cast<uint32_t>(c);
    ASSERT_EQ((p & kWhiteSpace) != 0, spaces.contains(c)) << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(TokenizerUnicode, NfcOfEveryCharacterIsThatOfTheReference) {
  const auto golden = nlohmann::json::parse(test::read_file(test::tokenizer_data("unicode_classes.json")));
  std::map<char32_t, std::u32string> changed;
  for (const auto& pair : golden.at("nfc_single")) {
    std::u32string to;
    for (const auto& c : pair[1]) to.push_back(c.get<uint32_t>());
    changed[pair[0].get<uint32_t>()] = to;
  }
  ASSERT_GT(changed.size(), 1000U);
  for (char32_t c = 0; c <= kLastCodePoint; c += kStep) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const auto found = changed.find(c);
    const std::u32string expected = found == changed.end() ? std::u32string(1, c) : found->second;
    ASSERT_EQ(normalized(NormalizationForm::nfc, to_utf8(std::u32string(1, c))), to_utf8(expected))
        << std::hex << static_cast<uint32_t>(c);
  }
  if (kStep == 1) std::printf("NFC of single characters: %zu change, the rest stay\n", changed.size());
}

TEST(TokenizerUnicode, NormalizationOrdersAndJoinsMarks) {
  EXPECT_EQ(normalized(NormalizationForm::nfc, "xe\xCC\x81y"), "x\xC3\xA9y");
  EXPECT_EQ(normalized(NormalizationForm::nfc, "s\xCC\x87\xCC\xA3"), "\xE1\xB9\xA9")
      << "the dot below comes first";
  EXPECT_EQ(normalized(NormalizationForm::nfd, "\xE1\xB9\xA9"), "s\xCC\xA3\xCC\x87");
  EXPECT_EQ(normalized(NormalizationForm::nfc, "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB"), "\xED\x95\x9C");
  EXPECT_EQ(normalized(NormalizationForm::nfkc, "\xEF\xAC\x81\xE2\x91\xA0"), "fi1");
  EXPECT_EQ(normalized(NormalizationForm::nfc, "\xE0\xA2\x98\xCC\xA3"), "\xE0\xA2\x98\xCC\xA3")
      << "U+0898 is newer than the reference's data: no mark to it";
}

TEST(TokenizerUnicode, HandWrittenScannersCutAsTheRegularExpressions) {
  // Characters that the patterns tell apart, and a walk through all of Unicode.
  const std::u32string tricky =
      U"  "
      U"\n\r\t''''sStTrReEvVmMlLdDaZ09.,!_"
      U"\u00a0\u3000\u2028\u0085\u017f\u00e9\u0301\u4e2d\u3042\u0663\u00bd\u2167\U0001f600\u200d\ufffd\u0e34";
  uint64_t state = 88172645463325252ULL;
  const auto random = [&](uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
  };
  size_t texts = 0;
  for (const auto pattern : {KnownPattern::gpt2, KnownPattern::qwen2, KnownPattern::llama3}) {
    ASSERT_EQ(known_pattern(pattern_text(pattern)), pattern);
    const auto regex = Regex::compile(pattern_text(pattern), "test");
    for (int i = 0; i < 3000; ++i, ++texts) {
      std::u32string text;
      for (uint64_t n = random(30); text.size() < n;) {
        char32_t c = random(4) ? tricky[random(tricky.size())]
                               : static_cast<char32_t>(random(i % 2 ? 0x3000 : 0x20000));
        if (c >= 0xD800 && c <= 0xDFFF) c = U'x';
        text.push_back(c);
      }
      const std::string bytes = to_utf8(text);
      std::vector<ByteSpan> expected;
      std::vector<ByteSpan> found;
      regex->find_all(bytes, expected);
      scan_pieces(pattern, bytes, {0, bytes.size()}, found);
      ASSERT_EQ(found, expected) << pattern_text(pattern) << " on "
                                 << nlohmann::json(bytes).dump(-1, ' ', true);
    }
  }
  std::printf("scanners equal to the regular expressions on %zu random texts\n", texts);
}

TEST(TokenizerRegex, FollowsOnigurumasRules) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(matches_of(R"(\p{N}{1,3}+)", "12345"), (Strings{"12345"}))
      << "a repeat of a repeat, not possessive";
  EXPECT_EQ(matches_of(R"(a$|^b)", "a\nb"), (Strings{"a", "b"})) << "anchors of lines";
  EXPECT_EQ(matches_of(R"(\h+)", "xyz beef"), (Strings{"beef"})) << "\\h is a hexadecimal digit";
  EXPECT_EQ(matches_of(R"([a-z&&[^aeiou]]+)", "hello"), (Strings{"h", "ll"}));
  EXPECT_EQ(matches_of(R"((?i:'s))", "'\xC5\xBF 'S"), (Strings{"'\xC5\xBF", "'S"})) << "U+017F folds to s";
  EXPECT_EQ(matches_of(R"((\p{L})\1)", "aab\xC3\xA9\xC3\xA9"), (Strings{"aa", "\xC3\xA9\xC3\xA9"}));
  EXPECT_EQ(matches_of(R"(x*)", "axb"), (Strings{"", "x", ""}));
  EXPECT_EQ(matches_of(R"((?m).)", "\n"), (Strings{"\n"}));
  EXPECT_EQ(matches_of(R"(\p{Han}+)", "a\xE4\xB8\xAD\xE6\x96\x87"), (Strings{"\xE4\xB8\xAD\xE6\x96\x87"}));
}

TEST(TokenizerRegex, ABrokenOrUnknownPatternIsAnErrorThatShowsIt) {
  const auto message = [](const std::string& pattern) -> std::string {
    try {
      Regex::compile(pattern, "tokenizer.json: pre_tokenizer.pattern");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  for (const char* broken :
       {"[a", "(a", "a)", "*a", "a|*", R"(\p{L)", "(?<n", "[b-a]", R"(\x{110000})", "a\\", R"((?<=a+)b)"}) {
    const std::string found = message(broken);
    EXPECT_NE(found.find("tokenizer.json: pre_tokenizer.pattern"), std::string::npos)
        << broken << ": " << found;
    EXPECT_NE(found.find(broken), std::string::npos) << found;
  }
  EXPECT_NE(message(R"(\p{Klingon})").find("\"Klingon\""), std::string::npos);
  EXPECT_NE(message(R"(\X)").find("not supported"), std::string::npos);
  EXPECT_NE(message(std::string(5000, '(')).find("nested"), std::string::npos);
  EXPECT_NE(message(std::string(5000, '[')).find("nested"), std::string::npos);
}

TEST(TokenizerRegex, EndlessBacktrackingIsAnErrorNotAHang) {
  std::vector<ByteSpan> found;
  const auto regex = Regex::compile(R"((?:a|a)*(?:a|a)*(?:a|a)*b\z)", "test");
  EXPECT_THROW(regex->find_all(std::string(2000, 'a') + "bc", found), Error);
}

TEST(TokenizerRegex, LongRunsNeedNoStack) {
  const std::string text(test::kSanitized ? 1 << 18 : 1 << 20, 'a');
  std::vector<ByteSpan> found;
  Regex::compile(R"((?:[a-z][\p{M}]*)+)", "test")->find_all(text, found);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], (ByteSpan{0, text.size()}));
}

}  // namespace
}  // namespace qwench::unicode
