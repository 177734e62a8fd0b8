#include "app/hub/pull/choose_files.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Paths = std::vector<std::string>;

std::vector<HubFile> Listing(const Paths& paths) {
  std::vector<HubFile> files;
  for (const std::string& path : paths) files.push_back({path, 1, std::string(40, 'a'), false});
  return files;
}

ChosenFiles Choose(const Paths& paths, const PullRequest& request, const std::string& index = "") {
  return ChooseFiles(Listing(paths), request, [&](const HubFile&) { return index; });
}

Paths PathsOf(const ChosenFiles& chosen) {
  Paths paths;
  for (const HubFile& file : chosen.files) paths.push_back(file.path);
  return paths;
}

PullRequest Request(const std::string& tag = "") { return {{"a/b", tag, ""}, {}, {}}; }

TEST(ChooseFilesTest, SafetensorsModelNeedsConfigTokenizerAndTemplates) {
  const Paths needed = {"config.json",
                        "generation_config.json",
                        "tokenizer.json",
                        "tokenizer.model",
                        "merges.txt",
                        "vocab.json",
                        "chat_template.jinja",
                        "model.safetensors",
                        "additional_chat_templates/tool.jinja",
                        "1_Pooling/config.json",
                        "2_Dense/model.safetensors"};
  Paths paths = needed;
  for (const char* other : {"README.md", ".gitattributes", "pytorch_model.bin", "pytorch_model.bin.index.json",
                            "consolidated.safetensors", "original/params.json", "onnx/model.onnx", "tf_model.h5",
                            "model.fp16.safetensors", "sub/model.safetensors", "LICENSE"}) {
    paths.push_back(other);
  }
  EXPECT_EQ(PathsOf(Choose(paths, Request())), needed);
}

TEST(ChooseFilesTest, IndexListsTheWeights) {
  const Paths paths = {"config.json",         "model.safetensors.index.json",
                       "model-1.safetensors", "w/model-2.safetensors",
                       "model.safetensors",   "old.safetensors"};
  EXPECT_EQ(PathsOf(Choose(paths, Request(), R"({"weight_map":{"x":"model-1.safetensors","y":"w/model-2.safetensors",
                                                  "z":"model-1.safetensors"}})")),
            (Paths{"config.json", "model.safetensors.index.json", "model-1.safetensors", "w/model-2.safetensors"}));
}

TEST(ChooseFilesTest, IndexWithMissingOrOtherFilesIsAnError) {
  const Paths paths = {"config.json", "model.safetensors.index.json", "model-1.safetensors", "x.bin"};
  for (const char* index : {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"x":5}})",
                            R"({"weight_map":{"x":"model-2.safetensors"}})", R"({"weight_map":{"x":"x.bin"}})",
                            R"({"weight_map":{"x":"../../y.safetensors"}})"}) {
    EXPECT_THROW(Choose(paths, Request(), index), ModelError) << index;
  }
}

TEST(ChooseFilesTest, AllWeightsOfTheRootAreChosenUnderOtherNames) {
  EXPECT_EQ(PathsOf(Choose({"config.json", "gptq-4bit.safetensors", "x/y.safetensors"}, Request())),
            (Paths{"config.json", "gptq-4bit.safetensors"}));
}

TEST(ChooseFilesTest, AnAdapterIsItsConfigurationAndWeights) {
  const Paths needed = {"adapter_config.json", "adapter_model.safetensors", "tokenizer_config.json"};
  Paths paths = needed;
  for (const char* other : {"README.md", "adapter_model.bin", "training_args.bin", "checkpoint-10/adapter_config.json",
                            "checkpoint-10/adapter_model.safetensors", "optimizer.pt"}) {
    paths.push_back(other);
  }
  EXPECT_EQ(PathsOf(Choose(paths, Request())), needed);
}

TEST(ChooseFilesTest, SafetensorsPrecedeGgufUnlessATagIsGiven) {
  const Paths paths = {"config.json", "m-Q4_0.gguf", "model.safetensors"};
  EXPECT_EQ(PathsOf(Choose(paths, Request())), (Paths{"config.json", "model.safetensors"}));
  const ChosenFiles chosen = Choose(paths, Request("Q4_0"));
  EXPECT_EQ(PathsOf(chosen), Paths{"m-Q4_0.gguf"});
  EXPECT_EQ(chosen.gguf_path, "m-Q4_0.gguf");
}

TEST(ChooseFilesTest, DefaultGgufFileComesWithTheOtherTags) {
  const ChosenFiles chosen = Choose({"config.json", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "mmproj-f16.gguf"}, Request());
  EXPECT_EQ(PathsOf(chosen), Paths{"m-Q4_K_M.gguf"});
  EXPECT_EQ(chosen.other_tags, Paths{"Q8_0"});
}

TEST(ChooseFilesTest, PatternsReplaceTheDefaultChoice) {
  PullRequest request = Request();
  request.include = {"*.json", "x/"};
  request.exclude = {"vocab*"};
  EXPECT_EQ(PathsOf(Choose({"config.json", "vocab.json", "x/y.onnx", "model.safetensors"}, request)),
            (Paths{"config.json", "x/y.onnx"}));
}

TEST(ChooseFilesTest, ExcludeAppliesToTheDefaultChoice) {
  PullRequest request = Request();
  request.exclude = {"*.safetensors"};
  EXPECT_EQ(PathsOf(Choose({"config.json", "model.safetensors"}, request)), Paths{"config.json"});
}

TEST(ChooseFilesTest, PicklesAreNeverChosen) {
  PullRequest request = Request();
  request.include = {"*"};
  EXPECT_EQ(PathsOf(Choose({"a.bin", "b.PT", "c.pth", "d.ckpt", "e.pkl", "f.json"}, request)), Paths{"f.json"});
  request.include = {"*.bin"};
  EXPECT_EQ(MessageOf<ModelError>([&] { Choose({"a.bin"}, request); }),
            "model a/b: no file of the repository matches --include and --exclude");
}

TEST(ChooseFilesTest, RepositoryWithOnlyPicklesIsExplained) {
  try {
    Choose({"config.json", "pytorch_model.bin"}, Request());
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(),
                 "model a/b: the repository has neither a GGUF file nor config.json or adapter_config.json with "
                 "safetensors files");
    EXPECT_EQ(error.hint(),
              "its weights are pickles, which can run code and are not downloaded; look for a conversion to "
              "safetensors or GGUF");
  }
}

TEST(ChooseFilesTest, IncludeAndTagExcludeEachOther) {
  PullRequest request = Request("Q4_0");
  request.include = {"*"};
  EXPECT_THROW(Choose({"m-Q4_0.gguf"}, request), ConfigError);
}

}  // namespace
}  // namespace vllm::app
