// Tests the file that remembers which kernels are faster on this CPU. tile_kernels_test compares their results.
#include "engine/worker/kernel_choice.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
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
using kernels::KernelVariants;

constexpr KernelVariants kQuad{.loads = kernels::UnitLoads::kQuad, .prefetch = kernels::OneRowPrefetch::kOn};

KernelVariants FindsFirst(Isa /*isa*/) { return {}; }
KernelVariants FindsQuad(Isa /*isa*/) { return kQuad; }

class StoredVariantsTest : public testing::Test {
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
  KernelVariants Stored(KernelVariants (*measure)(Isa isa)) const {
    return StoredVariants(directory_, Isa::kAvx512Vnni, measure);
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/cache/tiles";
};

TEST_F(StoredVariantsTest, IsMeasuredOnceForEachInstructionSet) {
  EXPECT_EQ(Stored(FindsQuad), kQuad);
  EXPECT_EQ(Text(), "quad_loads dots prefetch\n");
  EXPECT_EQ(fs::path(File()).filename(), kernels::CpuModel() + ".avx512_vnni.4");
  EXPECT_EQ(Stored(FindsFirst), kQuad);
  EXPECT_EQ(StoredVariants(directory_, Isa::kAvx512Bf16, FindsFirst), KernelVariants());
  EXPECT_EQ(Stored(FindsFirst), kQuad);
}

TEST_F(StoredVariantsTest, ReplacesADamagedFile) {
  Stored(FindsQuad);
  for (const std::string text :
       {"", "quad_loads dots prefetch", "triple_loads dots prefetch\n", "quad_loads fmas prefetch\n", "quad_loads\n",
        "quad_loads dots prefetch\nquad_loads dots prefetch\n"}) {
    std::ofstream(File()) << text;
    EXPECT_EQ(Stored(FindsFirst), KernelVariants()) << text;
    EXPECT_EQ(Text(), "single_loads dots no_prefetch\n");
  }
}

TEST_F(StoredVariantsTest, DoesNotUseADirectoryThatOthersCanWriteTo) {
  Stored(FindsQuad);
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(Stored(FindsFirst), KernelVariants());
  EXPECT_EQ(Text(), "quad_loads dots prefetch\n");
}

TEST_F(StoredVariantsTest, IsMeasuredIfTheDirectoryCannotBeCreated) {
  std::ofstream(temp_.path() + "/cache") << "a file";
  EXPECT_EQ(Stored(FindsQuad), kQuad);
}

TEST(ChooseKernelsTest, ReturnsOneOfTheTablesOfTheInstructionSet) {
  for (const Isa isa : kernels::AvailableIsas()) {
    VllmConfig config;
    config.isa = isa;
    const kernels::Kernels* const chosen = &ChooseKernels(config);
    EXPECT_EQ(chosen, &ChooseKernels(config));
    const std::vector<KernelVariants> all = kernels::VariantsOf(isa);
    EXPECT_TRUE(std::ranges::any_of(all, [&](const auto& one) { return chosen == &kernels::KernelsFor(isa, one); }));
  }
}

}  // namespace
}  // namespace vllm
