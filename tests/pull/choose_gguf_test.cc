#include "app/hub/choose_gguf.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

using Paths = std::vector<std::string>;

const Paths kModels = {"README.md",    "m-IQ2_K.gguf",  "m-Q2_K.gguf",       "m-Q4_K_M.gguf",
                       "m-Q8_0.gguf",  "m.bf16.gguf",   "mmproj-m-f16.gguf", "m-UD-Q4_K_XL.gguf",
                       "imatrix.gguf", "mtp-m-Q8.gguf", "m-UD-Q4_K_M.gguf"};

Paths Choose(const Paths& paths, const char* tag) { return ChooseGguf(paths, {"a/b", tag, ""}); }

TEST(ChooseGgufTest, TagsMatchInAnyLetterCase) {
  EXPECT_EQ(Choose(kModels, "Q8_0"), Paths{"m-Q8_0.gguf"});
  EXPECT_EQ(Choose(kModels, "q8_0"), Paths{"m-Q8_0.gguf"});
  EXPECT_EQ(Choose(kModels, "BF16"), Paths{"m.bf16.gguf"});
}

TEST(ChooseGgufTest, ExactTagIsPreferred) {
  EXPECT_EQ(Choose(kModels, "Q2_K"), Paths{"m-Q2_K.gguf"});
  EXPECT_EQ(Choose(kModels, "Q4_K_M"), Paths{"m-Q4_K_M.gguf"});
  EXPECT_EQ(Choose(kModels, "UD-Q4_K_M"), Paths{"m-UD-Q4_K_M.gguf"});
  EXPECT_EQ(Choose(kModels, "Q4_K_XL"), Paths{"m-UD-Q4_K_XL.gguf"});
}

TEST(ChooseGgufTest, TagMustEndAtADotOrDash) {
  EXPECT_EQ(MessageOf<ModelError>([] { Choose(kModels, "Q4_K"); }),
            "model a/b:Q4_K: no .gguf file of the repository has this tag");
}

TEST(ChooseGgufTest, ErrorListsTheTags) {
  try {
    Choose(kModels, "Q5_0");
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_EQ(error.hint(), "tags: IQ2_K, Q2_K, Q4_K_M, Q8_0, UD-Q4_K_M, UD-Q4_K_XL, bf16");
  }
}

TEST(ChooseGgufTest, DefaultIsQ4KMThenQ80ThenTheFirst) {
  EXPECT_EQ(Choose(kModels, ""), Paths{"m-Q4_K_M.gguf"});
  EXPECT_EQ(Choose(kModels, "latest"), Paths{"m-Q4_K_M.gguf"});
  EXPECT_EQ(Choose({"m-Q2_K.gguf", "m-Q8_0.gguf"}, ""), Paths{"m-Q8_0.gguf"});
  EXPECT_EQ(Choose({"n.gguf", "m.gguf", "imatrix.gguf"}, ""), Paths{"m.gguf"});
}

TEST(ChooseGgufTest, AllPartsOfASplitModelAreChosen) {
  const Paths paths = {"q/m-Q4_K_M-00002-of-00002.gguf", "q/m-Q4_K_M-00001-of-00002.gguf", "m-Q8_0.gguf"};
  const Paths parts = {"q/m-Q4_K_M-00001-of-00002.gguf", "q/m-Q4_K_M-00002-of-00002.gguf"};
  EXPECT_EQ(Choose(paths, "Q4_K_M"), parts);
  EXPECT_EQ(Choose(paths, ""), parts);
  EXPECT_EQ(Choose(paths, "m-Q4_K_M-00002-of-00002.gguf"), parts);
}

TEST(ChooseGgufTest, MissingPartIsAnError) {
  EXPECT_EQ(MessageOf<ModelError>([] { Choose({"m-Q4_0-00001-of-00002.gguf"}, "Q4_0"); }),
            "model a/b:Q4_0: the repository lacks a part of the model (m-Q4_0-00002-of-00002.gguf)");
}

TEST(ChooseGgufTest, FilesAreFoundByPathOrUniqueName) {
  const Paths paths = {"x/m.gguf", "y/m.gguf", "y/n.gguf", "mmproj-m-f16.gguf"};
  EXPECT_EQ(Choose(paths, "y/m.gguf"), Paths{"y/m.gguf"});
  EXPECT_EQ(Choose(paths, "n.gguf"), Paths{"y/n.gguf"});
  EXPECT_EQ(Choose(paths, "mmproj-m-f16.gguf"), Paths{"mmproj-m-f16.gguf"});
  EXPECT_THROW(Choose(paths, "m.gguf"), ModelError);
}

TEST(ChooseGgufTest, RepositoryWithoutModelsIsAnError) {
  EXPECT_EQ(MessageOf<ModelError>([] {
              Choose({"config.json", "mmproj-m-f16.gguf"}, "");
            }),
            "model a/b: the repository has no .gguf file with a language model");
}

TEST(ChooseGgufTest, TagIsTheLastQuantizationInTheName) {
  EXPECT_EQ(GgufTagOf("gemma-3-1b-it-q4_0.gguf"), "q4_0");
  EXPECT_EQ(GgufTagOf("x-q4_0-it-Q8_0.gguf"), "Q8_0");
  EXPECT_EQ(GgufTagOf("d/m-UD-IQ2_XXS-00001-of-00003.gguf"), "UD-IQ2_XXS");
  EXPECT_EQ(GgufTagOf("gpt-oss-20b-mxfp4.gguf"), "mxfp4");
  EXPECT_EQ(GgufTagOf("m.gguf"), "");
  EXPECT_EQ(GgufTagOf("x"), "");
}

}  // namespace
}  // namespace vllm::app
