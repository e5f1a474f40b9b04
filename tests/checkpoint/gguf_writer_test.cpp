#include "checkpoint/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/test_files.h"

namespace qwench {
namespace {

using testing::ElementsAre;

TEST(GgufWriter, WhatIsWrittenIsReadBack) {
  const TemporaryFolder folder;
  GgufWriter writer;
  writer.add_text("text", "a\0b");
  writer.add_count("count", 4'000'000'000);
  writer.add_number("number", 0.5f);
  writer.add_flag("flag", true);
  writer.add_texts("texts", std::vector<std::string>{"", "ab"});
  writer.add_integers("integers", std::vector<int32_t>{-1, 7});
  writer.add_tensor("odd", DType::f32, {3});
  writer.add_tensor("matrix", DType::q8_0, {2, 32});
  const std::vector<float> odd{1, 2, 3};
  const std::vector<std::byte> matrix(68, std::byte{5});
  const auto path = folder.path() / "new.gguf";
  writer.write(path, [&](size_t index, const GgufWriter::Put& put) {
    if (index == 0) return put(std::as_bytes(std::span(odd)));
    put(std::span(matrix).first(30));  // in pieces
    put(std::span(matrix).subspan(30));
  });
  EXPECT_EQ(std::filesystem::file_size(path), writer.bytes());
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "new.gguf.part"));

  const GgufFile file = GgufFile::open(path);
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.integer("count"), 4'000'000'000);
  EXPECT_EQ(file.number("number"), 0.5);
  EXPECT_EQ(file.boolean("flag"), true);
  EXPECT_THAT(*file.strings("texts"), ElementsAre("", "ab"));
  EXPECT_THAT(*file.integers("integers"), ElementsAre(-1, 7));
  const GgufTensor* tensor = file.tensor("matrix");
  ASSERT_NE(tensor, nullptr);
  EXPECT_THAT(tensor->shape, ElementsAre(2, 32));
  EXPECT_EQ(tensor->dtype, DType::q8_0);
  EXPECT_TRUE(std::equal(tensor->bytes.begin(), tensor->bytes.end(), matrix.begin(), matrix.end()));

  GgufWriter copy;
  for (const auto key : file.keys()) copy.add_copy(key, *file.find(key));
  copy.write(folder.path() / "copy.gguf", [](size_t, const GgufWriter::Put&) {});
  const GgufFile same = GgufFile::open(folder.path() / "copy.gguf");
  EXPECT_EQ(same.keys().size(), 6U);
  EXPECT_THAT(*same.strings("texts"), ElementsAre("", "ab"));
  EXPECT_EQ(same.number("number"), 0.5);
}

TEST(GgufWriter, AnErrorLeavesNothing) {
  const TemporaryFolder folder;
  GgufWriter writer;
  writer.add_tensor("t", DType::f32, {3});
  const auto path = folder.path() / "new.gguf";
  const auto [message, kind] = error_of([&] { writer.write(path, [](size_t, const GgufWriter::Put&) {}); });
  EXPECT_EQ(kind, ErrorKind::io);
  EXPECT_THAT(message, testing::HasSubstr("0 bytes of the tensor t"));
  EXPECT_THROW(writer.write(path, [](size_t, const GgufWriter::Put&) { throw 1; }), int);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(error_of([&] { writer.write(folder.path() / "no" / "x", {}); }).second, ErrorKind::io);
}

}  // namespace
}  // namespace qwench
