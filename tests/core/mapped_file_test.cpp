#include "core/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "qwench/error.h"

namespace qwench {
namespace {

class MappedFileTest : public testing::Test {
 protected:
  std::filesystem::path path_ = std::filesystem::path(testing::TempDir()) / "mapped_file_test.bin";
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(MappedFileTest, ShowsTheBytesAndMoves) {
  write("hello");
  MappedFile file = MappedFile::open(path_);
  const MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "hello");
}

TEST_F(MappedFileTest, AnEmptyFileIsAnEmptySpan) {
  write("");
  EXPECT_TRUE(MappedFile::open(path_).bytes().empty());
}

TEST_F(MappedFileTest, MissingFilesAndFoldersAreErrorsThatNameThePath) {
  for (const std::filesystem::path& path :
       {std::filesystem::path("/no/such/file"), std::filesystem::path("/")}) {
    try {
      MappedFile::open(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::not_found);
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
    }
  }
}

TEST_F(MappedFileTest, TextFilesHaveALimit) {
  write("123456");
  EXPECT_EQ(read_text_file(path_, 6), "123456");
  EXPECT_THROW(read_text_file(path_, 5), Error);
}

TEST(MappedFile, APipeIsRefusedWithoutWaitingForItsWriter) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("qwench-pipe-" + std::to_string(::getpid()));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(MappedFile::open(path), Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace qwench
