#include <gtest/gtest.h>

#include <string>

#include "checkpoint/gguf.h"
#include "text/gguf_tokenizer.h"

namespace qwench {
namespace {

void append_string(std::string& out, const std::string& text) {
  out.push_back(static_cast<char>(text.size()));
  out.append(7, '\0');  // the length is 64 bits
  out += text;
}

// A file without tensors that says which kind of tokenizer it has.
std::string file_with_model(const std::string& model) {
  std::string file("GGUF\3\0\0\0", 8);
  file.append(8, '\0');                        // tensors
  file += std::string("\1\0\0\0\0\0\0\0", 8);  // metadata entries
  append_string(file, "tokenizer.ggml.model");
  file += std::string("\10\0\0\0", 4);  // a string
  append_string(file, model);
  return file;
}

TEST(GgufTokenizer, AFileMayComeWithoutOne) {
  for (const auto& [model, has] : {std::pair{"none", false}, {"no_vocab", false}, {"gpt2", true}}) {
    const std::string bytes = file_with_model(model);
    const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), "x.gguf");
    EXPECT_EQ(has_gguf_vocabulary(file), has) << model;
  }
}

}  // namespace
}  // namespace qwench
