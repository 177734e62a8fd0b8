#include "app/installed/list_models.h"

#include "app/installed/find_model.h"
#include "app/installed/last_use.h"
#include "app/installed/model_type.h"
#include "tests/installed/installed_test.h"

namespace vllm::app {
namespace {

class ListModelsTest : public InstalledTest {
 protected:
  // Returns "NAME" or "NAME (PROBLEM)" of each model except the bundled one.
  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const InstalledModel& model : ListModels()) {
      if (model.location.origin == kShippedOrigin) continue;
      names.push_back(model.location.name + (model.problem.empty() ? "" : " (" + model.problem + ")"));
    }
    return names;
  }
  using Strings = std::vector<std::string>;
};

TEST_F(ListModelsTest, NothingIsInstalledInAnEmptyCache) { EXPECT_EQ(Names(), Strings{}); }

TEST_F(ListModelsTest, ARepositoryWithOneGgufFileHasNoTag) {
  AddFile("me--one", "one-Q4_K_M.gguf", "b", "12345");
  EXPECT_EQ(Names(), Strings{"me/one"});
  EXPECT_EQ(ListModels()[0].bytes, 5);
  EXPECT_EQ(ModelType(ListModels()[0].location), "GGUF Q4_K_M");
}

TEST_F(ListModelsTest, SeveralGgufFilesAreListedByTagOrByPath) {
  AddRef("me--two");
  AddFile("me--two", "a-Q4_0.gguf", "1", "1");
  AddFile("me--two", "b-Q4_0.gguf", "2", "2");
  AddFile("me--two", "a-q8_0-00001-of-00002.gguf", "3", "3");
  AddFile("me--two", "a-q8_0-00002-of-00002.gguf", "4", "4");
  AddFile("me--two", "sub/plain.gguf", "5", "5");
  AddFile("me--two", "mmproj-a-F16.gguf", "6", "6");
  EXPECT_EQ(Names(), (Strings{"me/two/b-Q4_0.gguf", "me/two/sub/plain.gguf", "me/two:Q4_0", "me/two:q8_0"}));
  for (const InstalledModel& model : ListModels()) {
    if (model.location.origin == kShippedOrigin) continue;
    EXPECT_EQ(FindModel(model.location.name).path(), model.location.path());
  }
}

TEST_F(ListModelsTest, UnfinishedDownloadsAreMarked) {
  AddFile("me--shards", "config.json", "c", "{}");
  AddFile("me--shards", "model-00001-of-00002.safetensors", "s1", "1");
  AddFile("me--index", "config.json", "c", "{}");
  AddFile("me--index", "model.safetensors.index.json", "i", "{}");
  AddFile("me--link", "config.json", "c", "{}");
  AddLink("me--link", "model.safetensors", "gone");
  AddFile("me--parts", "m-Q4_0-00001-of-00003.gguf", "p", "1");
  WriteFile(Repository("me--begun") + "/blobs/abc.incomplete", "12");
  EXPECT_EQ(Names(), (Strings{"me/begun (incomplete)", "me/index (incomplete)", "me/link (incomplete)",
                              "me/parts (incomplete)", "me/shards (incomplete)"}));
  AddFile("me--shards", "model-00002-of-00002.safetensors", "s2", "1");
  EXPECT_EQ(Names().back(), "me/shards");
}

TEST_F(ListModelsTest, AModelWithoutWeightsIsIncompleteIfADownloadWasBegun) {
  AddFile("me--pickles", "config.json", "c", "{}");
  AddFile("me--stopped", "config.json", "c", "{}");
  WriteFile(Repository("me--stopped") + "/blobs/abc.x.vllmcli-part", "12");
  EXPECT_EQ(Names(), (Strings{"me/pickles", "me/stopped (incomplete)"}));
  EXPECT_EQ(ModelType(FindModel("me/pickles")), "no weights");
  EXPECT_FALSE(IsComplete(FindModel("me/pickles")));
  AddFile("me--stopped", "model.safetensors", "w", "1");
  EXPECT_EQ(Names().back(), "me/stopped");
  EXPECT_TRUE(IsComplete(FindModel("me/stopped")));
}

TEST_F(ListModelsTest, SnapshotsWithoutMainNeedARevision) {
  AddFile("me--revisions", "a-Q4_0.gguf", "1", "123", "aaaa");
  EXPECT_EQ(Names(), Strings{"me/revisions"});
  AddFile("me--revisions", "a-Q4_0.gguf", "2", "1234", "bbbb");
  EXPECT_EQ(Names(), Strings{"me/revisions (needs --revision)"});
  EXPECT_EQ(ListModels()[0].bytes, 7);
}

TEST_F(ListModelsTest, OtherThingsInTheCacheAreIgnored) {
  WriteFile(root() + "/hub/version.txt", "1");
  WriteFile(root() + "/hub/datasets--me--data/snapshots/x/config.json", "{}");
  WriteFile(root() + "/hub/models--me--$(touch x)/snapshots/x/config.json", "{}");
  WriteFile(root() + "/hub/models--", "");
  AddFile("me--readme", "README.md", "r", "text");
  EXPECT_EQ(Names(), Strings{});
}

TEST_F(ListModelsTest, TypesComeFromConfigAndMetadata) {
  const auto type_of = [&](const std::string& config) {
    WriteFile(Own() + "/t/config.json", config);
    WriteFile(Own() + "/t/model.safetensors", "");
    return ModelType(FindModel("t"));
  };
  EXPECT_EQ(type_of(R"({"torch_dtype": "bfloat16"})"), "safetensors bfloat16");
  EXPECT_EQ(type_of(R"({"dtype": "float16", "quantization_config": {"quant_method": "gptq"}})"), "safetensors gptq");
  EXPECT_EQ(type_of(R"({"text_config": {"torch_dtype": "float32"}})"), "safetensors float32");
  for (const std::string config :
       {"", "[]", "{", R"({"dtype": 1})", R"({"text_config": 3, "quantization_config": []})"}) {
    EXPECT_EQ(type_of(config), "safetensors") << config;
  }
  const std::string text = std::string("GGUF\x03\0\0\0", 8) + std::string(8, '\0') +
                           std::string("\x02\0\0\0\0\0\0\0", 8) +
                           std::string("\x01\0\0\0\0\0\0\0a\x08\0\0\0\x01\0\0\0\0\0\0\0b", 22) +
                           std::string("\x11\0\0\0\0\0\0\0general.file_type\x04\0\0\0\x0F\0\0\0", 33);
  WriteFile(Own() + "/plain.gguf", text);
  EXPECT_EQ(ModelType(FindModel("plain.gguf")), "GGUF Q4_K_M");
  for (size_t size = 0; size < text.size(); ++size) {
    WriteFile(Own() + "/plain.gguf", text.substr(0, size));
    EXPECT_EQ(ModelType(FindModel("plain.gguf")), "GGUF");
  }
}

TEST_F(ListModelsTest, TheLastUseOfInstalledModelsIsKnown) {
  AddFile("me--one", "one-Q4_K_M.gguf", "b", "1");
  const ModelLocation location = FindModel("me/one");
  EXPECT_FALSE(LastUseMs(location));
  NoteUse(location);
  EXPECT_GT(LastUseMs(FindModel("me/one:Q4_K_M")), 0);
  const ModelLocation by_path = FindModel(location.gguf_file);
  EXPECT_FALSE(LastUseMs(by_path));
  NoteUse(by_path);
  EXPECT_FALSE(LastUseMs(by_path));
  ForgetUse(location);
  EXPECT_FALSE(LastUseMs(location));
}

TEST_F(ListModelsTest, ADirectoryForTheLastUseThatCannotBeMadeIsIgnored) {
  AddFile("me--one", "one-Q4_K_M.gguf", "b", "1");
  WriteFile(root() + "/state", "a file");
  NoteUse(FindModel("me/one"));
  EXPECT_FALSE(LastUseMs(FindModel("me/one")));
}

}  // namespace
}  // namespace vllm::app
