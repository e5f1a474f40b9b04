#include "checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/test_files.h"

namespace qwench {
namespace {

std::vector<SafetensorsEntry> parse(const std::string& file) {
  // A copy of exactly the file's size, so that sanitizers see a read past its end.
  static std::vector<std::byte> bytes;
  bytes.resize(file.size());
  bytes.shrink_to_fit();
  if (!file.empty()) std::memcpy(bytes.data(), file.data(), file.size());
  return parse_safetensors(bytes, "test.safetensors");
}

std::string refusal(const std::string& header, const std::string& data = {}) {
  const auto [message, kind] = error_of([&] { parse(safetensors_file(header, data)); });
  EXPECT_EQ(kind, ErrorKind::malformed);
  EXPECT_THAT(message, testing::StartsWith("test.safetensors: "));
  return message;
}

TEST(Safetensors, ListsTensorsInTheOrderOfTheirData) {
  const auto entries = parse(safetensors_file(R"({"__metadata__":{"format":"pt"},
    "b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]},
    "a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]}}   )",
                                              std::string(16, 'x')));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].dtype, DType::bf16);
  EXPECT_THAT(entries[0].shape, testing::ElementsAre(2, 3));
  EXPECT_EQ(entries[0].bytes.size(), 12U);
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].dtype, DType::f32);
}

TEST(Safetensors, EveryTypeOfTheFormatIsWellFormed) {
  const std::vector<std::pair<std::string, int>> bits{
      {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
      {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
      {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};
  for (const auto& [name, size] : bits) {
    const int bytes = 4 * size / 8;
    const auto entries = parse(safetensors_file(
        R"({"a":{"dtype":")" + name + R"(","shape":[4],"data_offsets":[0,)" + std::to_string(bytes) + "]}}",
        std::string(bytes, 'x')));
    ASSERT_EQ(entries.size(), 1U) << name;
    EXPECT_EQ(entries[0].dtype.has_value(), name == "F32" || name == "F16" || name == "BF16") << name;
    EXPECT_EQ(entries[0].dtype_name, name);
  }
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", "x"),
              testing::HasSubstr("whole bytes"));
}

TEST(Safetensors, AScalarHasNoDimensionsAndAnEmptyTensorNoBytes) {
  const auto entries = parse(safetensors_file(R"({"e":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},
    "s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"z":{"dtype":"F32","shape":[3,0],"data_offsets":[4,4]}})",
                                              "abcd"));
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_TRUE(parse(safetensors_file("{}", "")).empty());
}

TEST(Safetensors, MetadataMapsStringsToStrings) {
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":1}})"), testing::HasSubstr("not a string"));
  EXPECT_THAT(refusal(R"({"__metadata__":[]})"), testing::HasSubstr("not an object"));
  EXPECT_TRUE(parse(safetensors_file(R"({"__metadata__":null})", "")).empty());  // as the reference takes it
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":"b","a":"c"}})"), testing::HasSubstr("twice"));
  EXPECT_THAT(refusal(R"({"__metadata__":{},"__metadata__":{}})"), testing::HasSubstr("twice"));
}

TEST(Safetensors, HeadersThatBreakTheFormatAreRefused) {
  for (const std::string header :
       {"",
        " {}",
        "[]",
        "{",
        "{}x",
        "{} {}",
        R"({"a":null})",
        R"({"a":[]})",
        R"({"a":{"dtype":1,"shape":[],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":null,"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":4}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})",
        R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4.0]}})",
        R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})",
        R"({"a":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]}})",
        R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0]}})"}) {
    SCOPED_TRACE(header);
    refusal(header, "abcd");
  }
}

TEST(Safetensors, TensorsCoverTheDataWithoutGapOrOverlap) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})", "abc"),
              testing::HasSubstr("belong to none"));
  EXPECT_THAT(
      refusal(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
          "ab"),
      testing::HasSubstr("overlap"));
  EXPECT_THAT(refusal("{}", "ab"), testing::HasSubstr("2 bytes"));
  EXPECT_THAT(
      refusal(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
          "ab"),
      testing::HasSubstr("overlap"));
}

TEST(Safetensors, EveryCutOfASoundFileIsRefused) {
  const std::string file =
      safetensors_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_EQ(parse(file).size(), 1U);
  for (size_t size = 0; size < file.size(); ++size) {
    error_of([&] { parse(file.substr(0, size)); });
  }
}

TEST(Safetensors, NamesInErrorsAreCutAndCleaned) {
  const std::string message = refusal("{\"" + std::string(5000, 'n') + "\\n\":7}");
  EXPECT_LT(message.size(), 300U);
  EXPECT_THAT(refusal(R"({"a\u001b[2J\n":7})"), testing::HasSubstr("\\x1b[2J\\x0a"));
}

}  // namespace
}  // namespace qwench
