// Compares the table of models in docs/MODELS.md with the one that `vllmcli pull --list` prints.
#include "app/hub/curated_models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "app/hub/model_reference.h"

namespace vllm::app {
namespace {

TEST(CuratedModelsTest, TheTableOfTheDocumentationIsTheSame) {
  std::string rows;
  for (const CuratedModel& model : CuratedModels()) {
    rows += "| `" + std::string(model.name) + "` | " + GigabytesText(model.download_mb) + " | " +
            GigabytesText(MemoryMb(model)) + " | " + std::string(model.license) + " | " + std::string(model.remark) +
            " |\n";
  }
  std::ifstream file(std::string(VLLMCLI_SOURCE_DIR) + "/docs/MODELS.md");
  const std::string page((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_NE(page.find("|---|---|---|---|---|\n" + rows + "\n"), std::string::npos) << "expected:\n" << rows;
}

TEST(CuratedModelsTest, EachNameIsDifferentAndOneThatPullUnderstands) {
  EXPECT_EQ(CuratedModels().size(), 15u);
  std::set<std::string_view> names;
  for (const CuratedModel& model : CuratedModels()) {
    names.insert(model.name);
    const auto reference = ParseModelReference(model.name);
    ASSERT_TRUE(reference) << model.name;
    EXPECT_EQ(ToString(*reference), model.name);
    EXPECT_NE(reference->repo_id.find('/'), std::string::npos);
  }
  EXPECT_EQ(names.size(), CuratedModels().size());
}

TEST(CuratedModelsTest, ModelsAreSortedBySize) {
  EXPECT_TRUE(std::is_sorted(CuratedModels().begin(), CuratedModels().end(),
                             [](const auto& a, const auto& b) { return a.download_mb < b.download_mb; }));
}

}  // namespace
}  // namespace vllm::app
