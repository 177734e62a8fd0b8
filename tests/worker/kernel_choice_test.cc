// Tests the file that remembers which kernels are faster on this CPU. tile_kernels_test compares their results.
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
using kernels::UnitLoads;

UnitLoads FindsSingle(Isa /*isa*/) { return UnitLoads::kSingle; }
UnitLoads FindsQuad(Isa /*isa*/) { return UnitLoads::kQuad; }

class StoredUnitLoadsTest : public testing::Test {
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
  UnitLoads Stored(UnitLoads (*measure)(Isa isa)) const {
    return StoredUnitLoads(directory_, Isa::kAvx512Vnni, measure);
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/cache/tiles";
};

TEST_F(StoredUnitLoadsTest, IsMeasuredOnceForEachInstructionSet) {
  EXPECT_EQ(Stored(FindsQuad), UnitLoads::kQuad);
  EXPECT_EQ(Text(), "quad_loads\n");
  EXPECT_EQ(fs::path(File()).filename(), kernels::CpuModel() + ".avx512_vnni.3");
  EXPECT_EQ(Stored(FindsSingle), UnitLoads::kQuad);
  EXPECT_EQ(StoredUnitLoads(directory_, Isa::kAvx512Bf16, FindsSingle), UnitLoads::kSingle);
  EXPECT_EQ(Stored(FindsSingle), UnitLoads::kQuad);
}

TEST_F(StoredUnitLoadsTest, ReplacesADamagedFile) {
  Stored(FindsQuad);
  for (const std::string text : {"", "quad_loads", "triple_loads\n", "quad_loads\nquad_loads\n"}) {
    std::ofstream(File()) << text;
    EXPECT_EQ(Stored(FindsSingle), UnitLoads::kSingle) << text;
    EXPECT_EQ(Text(), "single_loads\n");
  }
}

TEST_F(StoredUnitLoadsTest, DoesNotUseADirectoryThatOthersCanWriteTo) {
  Stored(FindsQuad);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(Stored(FindsSingle), UnitLoads::kSingle);
  EXPECT_EQ(Text(), "quad_loads\n");
}

TEST_F(StoredUnitLoadsTest, IsMeasuredIfTheDirectoryCannotBeCreated) {
  std::ofstream(temp_.path() + "/cache") << "a file";
  EXPECT_EQ(Stored(FindsQuad), UnitLoads::kQuad);
}

TEST(ChooseKernelsTest, ReturnsOneOfTheTablesOfTheInstructionSet) {
  for (const Isa isa : kernels::AvailableIsas()) {
    VllmConfig config;
    config.isa = isa;
    const kernels::Kernels* const chosen = &ChooseKernels(config);
    EXPECT_EQ(chosen, &ChooseKernels(config));
    const bool is_quad = kernels::HasQuadLoads(isa) && chosen == &kernels::KernelsFor(isa, UnitLoads::kQuad);
    EXPECT_TRUE(is_quad || chosen == &kernels::KernelsFor(isa));
  }
}

}  // namespace
}  // namespace vllm
