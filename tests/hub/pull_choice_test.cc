// The files that `vllmcli pull` chooses: safetensors models, GGUF files by tag, --include and --exclude.
#include <nlohmann/json.hpp>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

class PullChoiceTest : public PullTest {
 protected:
  HubRepository Serve(const std::map<std::string, std::string>& files) {
    HubRepository repository = MakeRepository("org/model", files);
    server_.AddRepository(repository);
    return repository;
  }
  // Files of a GGUF repository; the content is the name.
  HubRepository ServeGguf() {
    std::map<std::string, std::string> files = {{"README.md", "text"}, {"config.json", "{}"}};
    for (const char* name :
         {"Model-Q4_K_M.gguf", "Model-Q4_K_S.gguf", "Model-UD-Q4_K_XL.gguf", "Model-Q8_0.gguf", "Model-F16.gguf",
          "BF16/Model-BF16-00001-of-00003.gguf", "BF16/Model-BF16-00002-of-00003.gguf",
          "BF16/Model-BF16-00003-of-00003.gguf", "mmproj-Q8_0.gguf", "mmproj-F16.gguf", "Model-imatrix.gguf"}) {
      files[name] = std::string("content of ") + name;
    }
    return Serve(files);
  }
};

TEST_F(PullChoiceTest, ASafetensorsModelIsFetchedWithoutPicklesAndOtherFormats) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  const std::set<std::string> wanted = {
      "config.json",           "generation_config.json", "model.safetensors", "tokenizer.json",
      "tokenizer_config.json", "chat_template.jinja",    "merges.txt",        "vocab.json",
      "tokenizer.model"};
  for (const char* name : {"chat_template.jinja", "merges.txt", "vocab.json", "tokenizer.model"}) files[name] = name;
  for (const char* name : {"pytorch_model.bin", "original/consolidated.00.pth", "onnx/model.onnx", "model.pt",
                           "tf_model.h5", "flax_model.msgpack", "training_args.bin", "README.md", ".gitattributes",
                           "modeling_custom.py", "images/logo.png"}) {
    files[name] = name;
  }
  const HubRepository model = Serve(files);
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model, wanted);
}

TEST_F(PullChoiceTest, TheIndexDecidesWhichWeightsAreFetched) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files.erase("model.safetensors");
  files["model-00001-of-00002.safetensors"] = "first";
  files["model-00002-of-00002.safetensors"] = "second";
  files["consolidated.safetensors"] = "the same weights in another format";
  files["model.safetensors.index.json"] =
      R"({"metadata": {"total_size": 10}, "weight_map": {"a": "model-00001-of-00002.safetensors",)"
      R"( "b": "model-00002-of-00002.safetensors", "c": "model-00001-of-00002.safetensors"}})";
  const HubRepository model = Serve(files);
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  std::set<std::string> wanted;
  for (const auto& [path, bytes] : files) wanted.insert(path);
  wanted.erase("consolidated.safetensors");
  ExpectCached(model, wanted);
}

TEST_F(PullChoiceTest, AnIndexThatNamesAMissingFileIsAnError) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files["model.safetensors.index.json"] = R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})";
  files.erase("model.safetensors");
  files["model-00002-of-00002.safetensors"] = "second";
  Serve(files);
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_NE(result.err.find("model-00001-of-00002.safetensors"), std::string::npos) << result.err;
}

TEST_F(PullChoiceTest, ATagChoosesOneGgufFile) {
  const HubRepository model = ServeGguf();
  const ProgramResult result = Pull({"org/model:Q4_K_S"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, (Snapshot(model) / "Model-Q4_K_S.gguf").string() + "\n");
  ExpectCached(model, {"Model-Q4_K_S.gguf"});
}

TEST_F(PullChoiceTest, TagsAreFoundInAnyLetterCase) {
  const HubRepository model = ServeGguf();
  EXPECT_EQ(Pull({"org/model:q8_0"}).status, 0);
  ExpectCached(model, {"Model-Q8_0.gguf"});
}

TEST_F(PullChoiceTest, DynamicQuantizationsHaveTheirOwnTag) {
  const HubRepository model = ServeGguf();
  EXPECT_EQ(Pull({"org/model:UD-Q4_K_XL"}).status, 0);
  ExpectCached(model, {"Model-UD-Q4_K_XL.gguf"});
}

TEST_F(PullChoiceTest, WithoutATagTheMediumQuantizationIsChosen) {
  const HubRepository model = ServeGguf();
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model, {"Model-Q4_K_M.gguf"});
  EXPECT_NE(result.err.find("Q8_0"), std::string::npos) << result.err;
}

TEST_F(PullChoiceTest, AllPartsOfASplitModelAreFetched) {
  const HubRepository model = ServeGguf();
  const ProgramResult result = Pull({"org/model:BF16"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, (Snapshot(model) / "BF16/Model-BF16-00001-of-00003.gguf").string() + "\n");
  ExpectCached(model, {"BF16/Model-BF16-00001-of-00003.gguf", "BF16/Model-BF16-00002-of-00003.gguf",
                       "BF16/Model-BF16-00003-of-00003.gguf"});
}

TEST_F(PullChoiceTest, AnUnknownTagListsTheTags) {
  ServeGguf();
  const ProgramResult result = Pull({"org/model:Q2_K"});
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.out, "");
  for (const char* tag : {"BF16", "F16", "Q4_K_M", "Q4_K_S", "Q8_0", "UD-Q4_K_XL"}) {
    EXPECT_NE(result.err.find(tag), std::string::npos) << result.err;
  }
  EXPECT_EQ(result.err.find("mmproj"), std::string::npos) << result.err;
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
}

TEST_F(PullChoiceTest, AFileOfTheRepositoryCanBeNamed) {
  const HubRepository model = ServeGguf();
  EXPECT_EQ(Pull({"org/model/Model-F16.gguf"}).status, 0);
  ExpectCached(model, {"Model-F16.gguf"});
}

TEST_F(PullChoiceTest, ASecondTagIsAddedToTheSnapshot) {
  const HubRepository model = ServeGguf();
  EXPECT_EQ(Pull({"org/model:Q8_0"}).status, 0);
  EXPECT_EQ(Pull({"org/model:F16"}).status, 0);
  ExpectCached(model, {"Model-Q8_0.gguf", "Model-F16.gguf"});
}

TEST_F(PullChoiceTest, ARepositoryWithBothFormatsIsASafetensorsModel) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files["model-Q8_0.gguf"] = "quantized";
  const HubRepository model = Serve(files);
  EXPECT_EQ(Pull({"org/model"}).status, 0);
  files.erase("model-Q8_0.gguf");
  std::set<std::string> wanted;
  for (const auto& [path, bytes] : files) wanted.insert(path);
  ExpectCached(model, wanted);
  EXPECT_EQ(Pull({"org/model:Q8_0"}).status, 0);
  wanted.insert("model-Q8_0.gguf");
  ExpectCached(model, wanted);
}

TEST_F(PullChoiceTest, IncludeAndExcludeChooseFiles) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files["README.md"] = "text";
  files["sub/notes.md"] = "more";
  const HubRepository model = Serve(files);
  const ProgramResult result =
      Pull({"org/model", "--include", "*.md", "--include", "config.json", "--exclude", "sub/*"});
  EXPECT_EQ(result.status, 0) << result.err;
  ExpectCached(model, {"README.md", "config.json"});
}

TEST_F(PullChoiceTest, ExcludeRemovesFilesFromTheChoice) {
  const HubRepository model = Serve(ModelFiles(1000));
  EXPECT_EQ(Pull({"org/model", "--exclude", "*.safetensors"}).status, 0);
  ExpectCached(model, {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"});
}

TEST_F(PullChoiceTest, AnIncludeThatMatchesNothingIsAnError) {
  Serve(ModelFiles(1000));
  const ProgramResult result = Pull({"org/model", "--include", "*.xyz"});
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

TEST_F(PullChoiceTest, ARepositoryWithoutAModelIsAnError) {
  Serve({{"README.md", "text"}, {"pytorch_model.bin", "pickle"}});
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 3) << result.err;
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

TEST_F(PullChoiceTest, ADryRunDownloadsNothing) {
  Serve(ModelFiles(1000));
  const ProgramResult result = Pull({"org/model", "--dry-run"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("model.safetensors"), std::string::npos) << result.out;
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

TEST_F(PullChoiceTest, JsonDescribesTheModelAndItsFiles) {
  const HubRepository model = ServeGguf();
  const ProgramResult result = Pull({"org/model:Q8_0", "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["model"], "org/model:Q8_0");
  EXPECT_EQ(json["revision"], "main");
  EXPECT_EQ(json["commit"], model.CommitOf("main"));
  EXPECT_EQ(json["path"], (Snapshot(model) / "Model-Q8_0.gguf").string());
  ASSERT_EQ(json["files"].size(), 1u);
  EXPECT_EQ(json["files"][0]["path"], "Model-Q8_0.gguf");
  EXPECT_EQ(json["files"][0]["bytes"], model.File("Model-Q8_0.gguf").bytes->size());
}

TEST_F(PullChoiceTest, QuietPrintsOnlyThePath) {
  const HubRepository model = ServeGguf();
  const ProgramResult result = Pull({"org/model:Q8_0", "--quiet"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, (Snapshot(model) / "Model-Q8_0.gguf").string() + "\n");
}

TEST_F(PullChoiceTest, SeveralModelsArePulledInOneCommand) {
  const HubRepository model = Serve(ModelFiles(1000));
  const HubRepository other = MakeRepository("org/other", ModelFiles(1000, 2));
  server_.AddRepository(other);
  const ProgramResult result = Pull({"org/model", "org/other"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, Snapshot(model).string() + "\n" + Snapshot(other).string() + "\n");
}

}  // namespace
}  // namespace vllm::app
