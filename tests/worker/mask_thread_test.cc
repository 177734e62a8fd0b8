// Tests the thread that computes masks of structured output.
#include "engine/worker/mask_thread.h"

#include <gtest/gtest.h>

#include <memory>

#include "engine/structured_output/json_schema/schema_compiler.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tokenizer/token_bytes.h"

namespace vllm {
namespace {

class MaskThreadTest : public ::testing::Test {
 protected:
  // Each constraint has its own grammar, so no other one has computed its mask.
  std::unique_ptr<OutputConstraint> MakeConstraint(const char* schema) {
    request_.grammar = std::make_shared<const CompiledGrammar>(
        CompileJsonSchema(schema), std::make_shared<const VocabTrie>(*tokenizer::TokenBytes(*tokenizer_), 300));
    return std::make_unique<OutputConstraint>(request_);
  }

  const std::unique_ptr<const tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
  EngineCoreRequest request_;
};

TEST_F(MaskThreadTest, ComputesTheMasksThatAreMissing) {
  const auto a = MakeConstraint(R"({"type":"string"})");
  const auto b = MakeConstraint(R"({"type":"array"})");
  ASSERT_TRUE(a->NeedsMask());
  ASSERT_TRUE(b->NeedsMask());
  MaskThread thread;
  // Finish gives up the masks that have not begun, so the thread may need several steps.
  while (a->NeedsMask() || b->NeedsMask()) {
    thread.Start({a.get(), b.get()});
    thread.Finish();
  }
  TokenBitmask computed, fresh;
  EXPECT_TRUE(a->FillBitmask(computed));
  EXPECT_TRUE(MakeConstraint(R"({"type":"string"})")->FillBitmask(fresh));
  EXPECT_EQ(computed, fresh);
}

TEST_F(MaskThreadTest, SamplingMayComputeTheSameMask) {
  for (int i = 0; i < 50; ++i) {
    const auto constraint = MakeConstraint(R"({"type":["string","number"]})");
    MaskThread thread;
    thread.Start({constraint.get()});
    TokenBitmask mask;
    EXPECT_TRUE(constraint->FillBitmask(mask));
    thread.Finish();
    EXPECT_FALSE(constraint->NeedsMask());
  }
}

TEST_F(MaskThreadTest, EndsWithWorkLeft) {
  const auto constraint = MakeConstraint(R"({"type":"string"})");
  MaskThread thread;
  thread.Finish();
  thread.Start({});
  thread.Start({constraint.get()});
}

}  // namespace
}  // namespace vllm
