#include "hub/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/gguf_choice.h"
#include "qwench/error.h"

namespace qwench::hub {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> chosen(const std::vector<std::string>& paths, const std::string& name,
                                const Filter& filter = {}) {
  Listing listing;
  for (const std::string& path : paths) listing.files.push_back({path, 1, ""});
  std::vector<std::string> result;
  for (const RemoteFile& file : select_files(listing, parse_model_name(name).value(), filter).files)
    result.push_back(file.path);
  return result;
}

std::string refusal(const std::vector<std::string>& paths, const std::string& name) {
  try {
    chosen(paths, name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Selection, TakesWhatAFolderNeeds) {
  EXPECT_THAT(chosen({"README.md", "config.json", "flax_model.msgpack", "merges.txt", "model.safetensors",
                      "pytorch_model.bin", "tokenizer.json", "onnx/model.onnx", "sub/model.safetensors",
                      "additional_chat_templates/tools.jinja"},
                     "a/b"),
              UnorderedElementsAre("config.json", "merges.txt", "model.safetensors", "tokenizer.json",
                                   "additional_chat_templates/tools.jinja"));
}

TEST(Selection, TakesTheWeightsThatWouldBeLoaded) {
  EXPECT_THAT(chosen({"model.safetensors", "other.safetensors"}, "a/b"), ElementsAre("model.safetensors"));
  EXPECT_THAT(chosen({"consolidated.safetensors", "model-00001-of-00002.safetensors",
                      "model-00002-of-00002.safetensors", "model.safetensors.index.json"},
                     "a/b"),
              ElementsAre("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                          "model.safetensors.index.json"));
  EXPECT_THAT(chosen({"x.safetensors", "y.safetensors"}, "a/b"),
              ElementsAre("x.safetensors", "y.safetensors"));
}

TEST(Selection, AChoiceMeansAGgufModelWithAllItsParts) {
  const std::vector<std::string> files = {"model.safetensors",
                                          "x-Q4_K_M.gguf",
                                          "x-IQ4_XS.gguf",
                                          "q8/x-q8_0-00001-of-00002.gguf",
                                          "q8/x-q8_0-00002-of-00002.gguf",
                                          "mmproj-x-Q8_0.gguf"};
  EXPECT_THAT(chosen(files, "a/b:q4_k_m"), ElementsAre("x-Q4_K_M.gguf"));
  EXPECT_THAT(chosen(files, "a/b:Q8_0"),
              ElementsAre("q8/x-q8_0-00001-of-00002.gguf", "q8/x-q8_0-00002-of-00002.gguf"));
  EXPECT_THAT(chosen(files, "a/b:q8/x-q8_0-00002-of-00002.gguf").size(), 2u);
  EXPECT_THAT(chosen(files, "a/b"), ElementsAre("model.safetensors"));
  EXPECT_THAT(refusal(files, "a/b:K_M"), AllOf(HasSubstr("a/b:Q4_K_M"), HasSubstr("a/b:IQ4_XS")));
}

TEST(Selection, AnUnclearOrEmptyRepositoryIsRefused) {
  EXPECT_THAT(refusal({"x-f16.gguf", "x-q8_0.gguf"}, "a/b"), HasSubstr("a/b:f16, a/b:q8_0"));
  EXPECT_THAT(refusal({"one/x-f16.gguf", "two/x-f16.gguf"}, "a/b:f16"), HasSubstr("may be"));
  EXPECT_THAT(refusal({"x-f16-00001-of-00003.gguf"}, "a/b:f16"), HasSubstr("1 of 3 parts"));
  EXPECT_THAT(refusal({"pytorch_model.bin"}, "a/b"), HasSubstr("neither"));
  EXPECT_THAT(refusal({"model.safetensors"}, "a/b:q8_0"), HasSubstr("no GGUF"));
}

TEST(Selection, PatternsAreThoseOfPythonsFnmatch) {
  const std::vector<std::string> files = {"a.json", "sub/b.json", "model.safetensors"};
  EXPECT_THAT(chosen(files, "a/b", {{"*.json"}, {}}), ElementsAre("a.json", "sub/b.json"));
  EXPECT_THAT(chosen(files, "a/b", {{"sub/"}, {}}), ElementsAre("sub/b.json"));
  EXPECT_THAT(chosen(files, "a/b", {{"*"}, {"*.json"}}), ElementsAre("model.safetensors"));
}

TEST(GgufChoice, ALabelIsTheTypeInTheName) {
  const auto label = [](const char* path) { return gguf_choices({path}).at(0).label(); };
  EXPECT_EQ(label("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), "q4_k_m");
  EXPECT_EQ(label("Model.Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(label("sub/Model-BF16-00001-of-00002.gguf"), "BF16");
  EXPECT_EQ(label("Model-instruct.gguf"), "Model-instruct");
}

}  // namespace
}  // namespace qwench::hub
