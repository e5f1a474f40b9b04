#include "checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/ggml_types.h"
#include "checkpoint/test_files.h"

namespace qwench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Gguf : public testing::Test {
 protected:
  GgufFile parse(const std::string& file) {
    bytes_.assign(reinterpret_cast<const std::byte*>(file.data()),
                  reinterpret_cast<const std::byte*>(file.data()) + file.size());
    bytes_.shrink_to_fit();
    return GgufFile::parse(bytes_, "test.gguf");
  }
  GgufFile parse(const GgufBuilder& builder) { return parse(builder.build()); }
  std::string refusal(const std::string& file) {
    const std::string message = error_of([&] { parse(file); }).first;
    EXPECT_THAT(message, testing::StartsWith("test.gguf: "));
    return message;
  }
  std::string refusal(const GgufBuilder& builder) { return refusal(builder.build()); }

 private:
  std::vector<std::byte> bytes_;
};

std::string array(uint32_t type, uint64_t count, const std::string& elements) {
  return packed(type) + packed(count) + elements;
}

TEST_F(Gguf, ReadsEveryTypeOfValue) {
  GgufBuilder builder;
  builder.raw("u8", 0, packed<uint8_t>(200))
      .raw("i8", 1, packed<int8_t>(-100))
      .raw("u16", 2, packed<uint16_t>(60000));
  builder.raw("i16", 3, packed<int16_t>(-30000))
      .raw("u32", 4, packed(4000000000U))
      .raw("i32", 5, packed(-2000000000));
  builder.raw("f32", 6, packed(1.5f))
      .raw("bool", 7, std::string(1, 1))
      .string("string", "Qwen")
      .raw("u64", 10, packed(uint64_t{1} << 40));
  builder.raw("i64", 11, packed(-(int64_t{1} << 40))).raw("f64", 12, packed(2.5));
  builder.raw("strings", 9, array(8, 2, GgufBuilder::text("a") + GgufBuilder::text("")));
  builder.raw("ints", 9, array(5, 2, packed(-1) + packed(7)))
      .raw("floats", 9, array(6, 2, packed(0.5f) + packed(-2.0f)));
  builder.raw("bools", 9, array(7, 2, std::string("\0\1", 2))).raw("empty", 9, array(8, 0, ""));
  for (const uint32_t version : {2U, 3U}) {
    builder.version = version;
    const GgufFile file = parse(builder);
    EXPECT_EQ(file.version(), version);
    EXPECT_EQ(file.keys().size(), 17U);
    EXPECT_EQ(file.integer("u8"), 200);
    EXPECT_EQ(file.integer("i8"), -100);
    EXPECT_EQ(file.integer("u16"), 60000);
    EXPECT_EQ(file.integer("i16"), -30000);
    EXPECT_EQ(file.integer("u32"), 4000000000);
    EXPECT_EQ(file.integer("i32"), -2000000000);
    EXPECT_EQ(file.integer("u64"), int64_t{1} << 40);
    EXPECT_EQ(file.integer("i64"), -(int64_t{1} << 40));
    EXPECT_EQ(file.number("f32"), 1.5);
    EXPECT_EQ(file.number("f64"), 2.5);
    EXPECT_EQ(file.number("i8"), -100.0);
    EXPECT_EQ(file.boolean("bool"), true);
    EXPECT_EQ(file.string("string"), "Qwen");
    EXPECT_THAT(*file.strings("strings"), ElementsAre("a", ""));
    EXPECT_THAT(*file.integers("ints"), ElementsAre(-1, 7));
    EXPECT_THAT(*file.floats("floats"), ElementsAre(0.5f, -2.0f));
    EXPECT_TRUE(file.strings("empty")->empty());
    EXPECT_EQ(file.string("absent"), std::nullopt);
  }
}

TEST_F(Gguf, AValueOfAnotherTypeIsNamed) {
  const GgufFile file =
      parse(GgufBuilder().string("text", "two").f32("float", 1.0f).raw("huge", 10, packed(~uint64_t{0})));
  const auto message = [&](auto&& f) { return error_of(f).first; };
  EXPECT_THAT(message([&] { file.integer("text"); }),
              HasSubstr("text is of type string, expected a whole number"));
  EXPECT_THAT(message([&] { file.integer("float"); }), HasSubstr("float is of type float32"));
  EXPECT_THAT(message([&] { file.integer("huge"); }), HasSubstr("18446744073709551615"));
  EXPECT_THAT(message([&] { file.number("huge"); }), HasSubstr("18446744073709551615"));
  EXPECT_THAT(message([&] { file.number("text"); }), HasSubstr("a number"));
  EXPECT_THAT(message([&] { file.boolean("text"); }), HasSubstr("a bool"));
  EXPECT_THAT(message([&] { file.string("float"); }), HasSubstr("a string"));
  EXPECT_THAT(message([&] { file.strings("text"); }), HasSubstr("an array of strings"));
}

TEST_F(Gguf, TensorsHaveTheirOutermostDimensionFirst) {
  const GgufFile file = parse(
      GgufBuilder().f32_tensor("a", {3, 2}, 1.0f).tensor("b", {2, 64}, 8, std::string(2 * 2 * 34, 'q')));
  ASSERT_EQ(file.tensors().size(), 2U);
  const GgufTensor* b = file.tensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_THAT(b->shape, ElementsAre(2, 64));
  EXPECT_EQ(b->dtype, DType::q8_0);
  EXPECT_EQ(b->bytes.size(), 136U);
  EXPECT_EQ(static_cast<char>(b->bytes[0]), 'q');
  EXPECT_EQ(file.tensor("c"), nullptr);
}

TEST_F(Gguf, TypesThatCannotBeReadAreStillWellFormed) {
  const GgufFile file = parse(
      GgufBuilder().tensor("a", {256}, 16, std::string(66, 'x')).tensor("b", {32}, 39, std::string(17, 'x')));
  EXPECT_EQ(file.tensor("a")->type_name, "IQ2_XXS");
  EXPECT_EQ(file.tensor("a")->dtype, std::nullopt);
  EXPECT_EQ(file.tensor("b")->type_name, "MXFP4");
  for (const uint32_t removed : {4U, 5U, 31U, 32U, 33U, 36U, 38U, 42U, 999U})
    EXPECT_EQ(ggml_type(removed), nullptr) << removed;
}

TEST_F(Gguf, SizesOfReadableTypesAreThoseOfTheEngine) {
  int readable = 0;
  for (uint32_t number = 0; number < 64; ++number) {
    const GgmlType* type = ggml_type(number);
    if (type == nullptr || !type->dtype) continue;
    ++readable;
    EXPECT_EQ(static_cast<int>(type->block_size), traits(*type->dtype).block_size) << type->name;
    EXPECT_EQ(static_cast<int>(type->block_bytes), traits(*type->dtype).block_bytes) << type->name;
  }
  EXPECT_EQ(readable, kDTypeCount);
}

TEST_F(Gguf, RowsMustBeWholeBlocks) {
  EXPECT_THAT(refusal(GgufBuilder().tensor("a", {2, 33}, 8, std::string(200, 'x'))),
              HasSubstr("rows of 33 numbers are no multiple of the 32"));
  EXPECT_THAT(refusal(GgufBuilder().tensor("a", {2, 32}, 12, std::string(200, 'x'))), HasSubstr("Q4_K"));
}

TEST_F(Gguf, OtherEndiannessAndVersionsAreNamed) {
  GgufBuilder builder;
  builder.version = 0x03000000;
  EXPECT_THAT(refusal(builder), HasSubstr("big-endian"));
  builder.version = 1;
  EXPECT_THAT(refusal(builder), HasSubstr("version 1"));
}

TEST_F(Gguf, MetadataIsHeldToTheFormat) {
  EXPECT_THAT(refusal(GgufBuilder().u32("a", 1).u32("a", 2)), HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(refusal(GgufBuilder().raw("a", 7, std::string(1, 2))), HasSubstr("neither 0 nor 1"));
  EXPECT_THAT(refusal(GgufBuilder().raw("a", 13, "x")), HasSubstr("type 13"));
  EXPECT_THAT(refusal(GgufBuilder().raw("a", 9, array(9, 1, array(0, 1, "x")))),
              HasSubstr("array of arrays"));
  EXPECT_THAT(refusal(GgufBuilder().raw("a", 9, array(8, uint64_t{1} << 61, ""))), HasSubstr("strings"));
  EXPECT_THAT(refusal(GgufBuilder().raw("a", 9, array(0, ~uint64_t{0}, ""))), HasSubstr("more than fit"));
  EXPECT_THAT(refusal(GgufBuilder().raw("general.alignment", 10, packed<uint64_t>(32))),
              HasSubstr("not uint32"));
  for (const uint32_t alignment : {0U, 1U, 4U, 24U, 48U}) {
    EXPECT_THAT(refusal(GgufBuilder().u32("general.alignment", alignment)), HasSubstr("power of two"))
        << alignment;
  }
}

TEST_F(Gguf, OverlappingTensorsAreRefused) {
  std::string file = GgufBuilder().f32_tensor("a", {16}).f32_tensor("b", {16}).build();
  const size_t at = file.find(packed<uint64_t>(64));
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 8, packed<uint64_t>(32));
  EXPECT_THAT(refusal(file), HasSubstr("overlap"));
}

TEST_F(Gguf, EveryCutOfASoundFileIsRefused) {
  const std::string file = GgufBuilder()
                               .string("a", "text")
                               .raw("l", 9, array(8, 1, GgufBuilder::text("x")))
                               .f32_tensor("t", {8})
                               .build();
  parse(file);
  for (size_t size = 0; size < file.size(); ++size) error_of([&] { parse(file.substr(0, size)); });
}

class GgufSplit : public testing::Test {
 protected:
  static GgufBuilder part(uint16_t number, uint16_t count, int32_t tensors) {
    GgufBuilder builder;
    builder.raw("split.no", 2, packed(number))
        .raw("split.count", 2, packed(count))
        .raw("split.tensors.count", 5, packed(tensors));
    return builder;
  }
  void write(const std::string& name, const GgufBuilder& builder) { folder_.write(name, builder.build()); }
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

 private:
  TemporaryFolder folder_;
};

TEST_F(GgufSplit, AnyPartOpensAllOfThem) {
  write("m-00001-of-00002.gguf", part(0, 2, 2).string("general.name", "whole").f32_tensor("a", {1}));
  write("m-00002-of-00002.gguf", part(1, 2, 2).f32_tensor("b", {1}));
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf"}) {
    const GgufFile opened = GgufFile::open(file(name));
    EXPECT_EQ(opened.paths().size(), 2U);
    EXPECT_EQ(opened.string("general.name"), "whole");
    EXPECT_NE(opened.tensor("a"), nullptr);
    EXPECT_NE(opened.tensor("b"), nullptr);
  }
}

TEST_F(GgufSplit, AMissingPartIsNamed) {
  write("m-00001-of-00002.gguf", part(0, 2, 2).f32_tensor("a", {1}));
  const auto [message, kind] = error_of([&] { GgufFile::open(file("m-00001-of-00002.gguf")); });
  EXPECT_EQ(kind, ErrorKind::not_found);
  EXPECT_THAT(message, HasSubstr("m-00002-of-00002.gguf"));
}

TEST_F(GgufSplit, PartsThatDoNotFitAreRefused) {
  const auto message = [&](const char* name) { return error_of([&] { GgufFile::open(file(name)); }).first; };
  write("n-00001-of-00002.gguf", part(0, 2, 2).f32_tensor("a", {1}));
  write("n-00002-of-00002.gguf", part(0, 2, 2).f32_tensor("b", {1}));
  EXPECT_THAT(message("n-00001-of-00002.gguf"), HasSubstr("part 1 of 2, the name part 2 of 2"));
  write("c-00001-of-00002.gguf", part(0, 2, 3).f32_tensor("a", {1}));
  write("c-00002-of-00002.gguf", part(1, 2, 3).f32_tensor("b", {1}));
  EXPECT_THAT(message("c-00001-of-00002.gguf"), HasSubstr("2 tensors, but split.tensors.count says 3"));
  write("d-00001-of-00002.gguf", part(0, 2, 2).f32_tensor("a", {1}));
  write("d-00002-of-00002.gguf", part(1, 2, 2).f32_tensor("a", {1}));
  EXPECT_THAT(message("d-00001-of-00002.gguf"), HasSubstr("two files"));
  write("p-00003-of-00002.gguf", part(0, 2, 2));
  EXPECT_THAT(message("p-00003-of-00002.gguf"), HasSubstr("part 3 of 2"));
  write("renamed.gguf", part(0, 2, 2).f32_tensor("a", {1}));
  EXPECT_THAT(message("renamed.gguf"), HasSubstr("one of 2 files"));
}

}  // namespace
}  // namespace qwench
