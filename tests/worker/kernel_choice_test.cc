// Tests the file that remembers which tile shape is fastest on this CPU. tile_kernels_test compares the results of the
// shapes.
#include "engine/worker/kernel_choice.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/isa/kernels_for.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;
using kernels::Isa;
using kernels::TileShape;

TileShape FindsOnePanel(Isa /*isa*/) { return TileShape::kOnePanel; }
TileShape FindsTwoPanels(Isa /*isa*/) { return TileShape::kTwoPanels; }

class StoredTileShapeTest : public testing::Test {
 protected:
  // Returns the only file in the directory.
  std::string File() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(directory_)) files.push_back(entry.path());
    EXPECT_EQ(files.size(), 1u);
    return files.at(0);
  }
  std::string Text() const {
    std::ifstream file(File());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  TileShape Stored(TileShape (*measure)(Isa isa)) const {
    return StoredTileShape(directory_, Isa::kAvx512Vnni, measure);
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/cache/tiles";
};

TEST_F(StoredTileShapeTest, IsMeasuredOnceForEachInstructionSet) {
  EXPECT_EQ(Stored(FindsTwoPanels), TileShape::kTwoPanels);
  EXPECT_EQ(Text(), "two_panels\n");
  EXPECT_EQ(fs::path(File()).filename(), kernels::CpuModel() + ".avx512_vnni.2");
  EXPECT_EQ(Stored(FindsOnePanel), TileShape::kTwoPanels);
  EXPECT_EQ(StoredTileShape(directory_, Isa::kAvx512Bf16, FindsOnePanel), TileShape::kOnePanel);
  EXPECT_EQ(Stored(FindsOnePanel), TileShape::kTwoPanels);
}

TEST_F(StoredTileShapeTest, ReplacesADamagedFile) {
  Stored(FindsTwoPanels);
  for (const std::string text : {"", "two_panels", "three_panels\n", "two_panels\ntwo_panels\n"}) {
    std::ofstream(File()) << text;
    EXPECT_EQ(Stored(FindsOnePanel), TileShape::kOnePanel) << text;
    EXPECT_EQ(Text(), "one_panel\n");
  }
}

TEST_F(StoredTileShapeTest, DoesNotUseADirectoryThatOthersCanWriteTo) {
  Stored(FindsTwoPanels);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(Stored(FindsOnePanel), TileShape::kOnePanel);
  EXPECT_EQ(Text(), "two_panels\n");
}

TEST_F(StoredTileShapeTest, IsMeasuredIfTheDirectoryCannotBeCreated) {
  std::ofstream(temp_.path() + "/cache") << "a file";
  EXPECT_EQ(Stored(FindsTwoPanels), TileShape::kTwoPanels);
}

TEST(ChooseKernelsTest, ReturnsOneOfTheTablesOfTheInstructionSet) {
  for (const Isa isa : kernels::AvailableIsas()) {
    VllmConfig config;
    config.isa = isa;
    const kernels::Kernels* const chosen = &ChooseKernels(config);
    EXPECT_EQ(chosen, &ChooseKernels(config));
    const bool is_two_panels = kernels::HasTwoPanels(isa) && chosen == &kernels::KernelsFor(isa, TileShape::kTwoPanels);
    EXPECT_TRUE(is_two_panels || chosen == &kernels::KernelsFor(isa));
  }
}

}  // namespace
}  // namespace vllm
