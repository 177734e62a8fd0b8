// Tests the thread that compiles grammars, and the limit for the memory of its cache.
#include "engine/structured_output/compiler/grammar_compiler.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using Kind = StructuredOutputsParams::Kind;

constexpr int64_t kVocabSize = 300;
constexpr int64_t kManyBytes = int64_t{1} << 30;

// A schema whose texts are a constant, so that schemas with different constants are different.
StructuredOutputsParams Constant(const std::string& text) { return {R"({"const":")" + text + "\"}"}; }

class GrammarCompilerTest : public ::testing::Test {
 protected:
  static GrammarFuturePtr CompileNow(GrammarCompiler& compiler, const StructuredOutputsParams& params) {
    GrammarFuturePtr future = compiler.Compile(params);
    compiler.Wait(*future);
    return future;
  }
  // Returns the text of the only text of the grammar.
  static std::string TextOf(const CompiledGrammar& grammar) {
    GrammarAutomaton::Position start;
    return grammar.automaton.Forced(start, 1000).bytes;
  }

  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
};

// Keeps the thread of a compiler busy after its first grammar, until Release.
class BusyThread {
 public:
  explicit BusyThread(GrammarCompiler& compiler) {
    compiler.SetNotify([is_released = release_.get_future().share()] { is_released.wait(); });
    compiler.Wait(*compiler.Compile({"first", Kind::kChoice, {"first"}}));
  }
  void Release() { release_.set_value(); }

 private:
  std::promise<void> release_;
};

TEST_F(GrammarCompilerTest, EqualConstraintsAreCompiledOnce) {
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kManyBytes);
  BusyThread busy(compiler);
  const GrammarFuturePtr first = compiler.Compile(Constant("a"));
  const GrammarFuturePtr second = compiler.Compile(Constant("a"));
  EXPECT_EQ(first, second);
  EXPECT_FALSE(first->is_done());
  busy.Release();
  compiler.Wait(*first);
  EXPECT_EQ(TextOf(*first->grammar()), "\"a\"");
  const GrammarFuturePtr third = compiler.Compile(Constant("a"));
  EXPECT_TRUE(third->is_done());
  EXPECT_EQ(third, first);
  EXPECT_EQ(compiler.num_compiled(), 2);
}

TEST_F(GrammarCompilerTest, ConstraintsThatDifferInAnyFieldAreDifferent) {
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kManyBytes);
  StructuredOutputsParams params = {R"({"type":"object"})"};
  const GrammarFuturePtr schema = CompileNow(compiler, params);
  params.any_order = true;
  EXPECT_NE(CompileNow(compiler, params), schema);
  params.flexible_whitespace = true;
  EXPECT_NE(CompileNow(compiler, params), schema);
  CompileNow(compiler, {"a", Kind::kRegex});
  CompileNow(compiler, {"a", Kind::kChoice, {"x"}});
  CompileNow(compiler, {"a", Kind::kChoice, {"y"}});
  EXPECT_EQ(compiler.num_compiled(), 6);
}

TEST_F(GrammarCompilerTest, AnInvalidConstraintIsRejectedOnce) {
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kManyBytes);
  const StructuredOutputsParams invalid = {R"({"format":"idn-email"})"};
  const GrammarFuturePtr future = CompileNow(compiler, invalid);
  EXPECT_EQ(future->grammar(), nullptr);
  EXPECT_EQ(future->error(), "JSON schema: #/format: not supported (idn-email)");
  EXPECT_EQ(compiler.Compile(invalid), future);
  EXPECT_EQ(compiler.num_compiled(), 1);
}

TEST_F(GrammarCompilerTest, NeedsATokenizer) {
  GrammarCompiler compiler(nullptr, kVocabSize, kManyBytes);
  EXPECT_EQ(CompileNow(compiler, Constant("a"))->error(), "structured_outputs: needs a tokenizer (none is loaded)");
}

TEST_F(GrammarCompilerTest, AGrammarThatNobodyWaitsForIsNotCompiled) {
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kManyBytes);
  BusyThread busy(compiler);
  compiler.Compile(Constant("a"));
  const GrammarFuturePtr last = compiler.Compile(Constant("b"));
  busy.Release();
  compiler.Wait(*last);
  EXPECT_EQ(compiler.num_compiled(), 2);
  EXPECT_EQ(compiler.num_cached(), 2u);
  EXPECT_EQ(TextOf(*CompileNow(compiler, Constant("a"))->grammar()), "\"a\"");
}

TEST_F(GrammarCompilerTest, WaitUntilEndsAtItsDeadline) {
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kManyBytes);
  BusyThread busy(compiler);
  const GrammarFuturePtr future = compiler.Compile(Constant("a"));
  EXPECT_FALSE(compiler.WaitUntil(*future, std::chrono::steady_clock::now()));
  busy.Release();
  EXPECT_TRUE(compiler.WaitUntil(*future, std::chrono::steady_clock::time_point::max()));
}

TEST_F(GrammarCompilerTest, DestructionDropsTheGrammarsThatWait) {
  GrammarFuturePtr waiting;
  {
    GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kManyBytes);
    BusyThread busy(compiler);
    waiting = compiler.Compile(Constant("a"));
    busy.Release();
  }
  // Either result is possible, but both threads are done with it.
  EXPECT_TRUE(!waiting->is_done() || waiting->grammar() != nullptr);
}

TEST_F(GrammarCompilerTest, TenThousandSchemasStayWithinTheLimit) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kMaxBytes);
  size_t most_bytes = 0;
  size_t most_cached = 0;
  for (int i = 0; i < 10'000; ++i) {
    const GrammarFuturePtr future = CompileNow(compiler, Constant("text " + std::to_string(i)));
    ASSERT_NE(future->grammar(), nullptr);
    most_bytes = std::max(most_bytes, compiler.memory_bytes());
    most_cached = std::max(most_cached, compiler.num_cached());
  }
  EXPECT_LE(most_bytes, kMaxBytes);
  EXPECT_GT(most_cached, 10u);
  EXPECT_LT(most_cached, 1000u);
  EXPECT_EQ(compiler.num_compiled(), 10'000);
}

TEST_F(GrammarCompilerTest, RejectedSchemasStayWithinTheLimit) {
  constexpr size_t kMaxBytes = size_t{1} << 16;
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kMaxBytes);
  for (int i = 0; i < 1000; ++i) {
    CompileNow(compiler, {R"({"format":"idn-email","title":")" + std::to_string(i) + "\"}"});
    ASSERT_LE(compiler.memory_bytes(), kMaxBytes);
  }
}

TEST_F(GrammarCompilerTest, TheLeastRecentlyUsedGrammarIsDroppedFirst) {
  GrammarCompiler unlimited(tokenizer_.get(), kVocabSize, kManyBytes);
  CompileNow(unlimited, Constant("0"));
  const auto bytes_of_one = static_cast<int64_t>(unlimited.memory_bytes());
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, 4 * bytes_of_one + bytes_of_one / 2);
  for (const char* text : {"0", "1", "2", "3", "0", "4"}) CompileNow(compiler, Constant(text));
  // The fifth grammar has removed some, of which 1 is the first.
  EXPECT_EQ(compiler.num_compiled(), 5);
  EXPECT_TRUE(compiler.Compile(Constant("0"))->is_done());
  EXPECT_TRUE(compiler.Compile(Constant("4"))->is_done());
  CompileNow(compiler, Constant("1"));
  EXPECT_EQ(compiler.num_compiled(), 6);
}

TEST_F(GrammarCompilerTest, AGrammarInUseIsKeptAndDiscardsItsStates) {
  constexpr size_t kMaxBytes = size_t{256} << 10;
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, kMaxBytes);
  const StructuredOutputsParams params = {R"({"type":"string","minLength":2000,"maxLength":2000})"};
  const std::shared_ptr<const CompiledGrammar> grammar = CompileNow(compiler, params)->grammar();
  GrammarAutomaton::Position position;
  ASSERT_TRUE(grammar->automaton.Advance(position, "\"" + std::string(1000, 'x')));
  const TokenBitmask mask = grammar->automaton.AllowedTokens(position);
  const size_t grown_bytes = grammar->automaton.memory_bytes();
  EXPECT_GT(grown_bytes, kMaxBytes);
  EXPECT_GT(compiler.memory_bytes(), kMaxBytes);
  compiler.Trim();
  EXPECT_LE(compiler.memory_bytes(), kMaxBytes);
  EXPECT_LT(grammar->automaton.memory_bytes(), grown_bytes);
  EXPECT_EQ(compiler.Compile(params)->grammar(), grammar);
  EXPECT_EQ(grammar->automaton.AllowedTokens(position), mask);
}

TEST_F(GrammarCompilerTest, MemoryOfDroppedGrammarsIsNotCounted) {
  GrammarCompiler compiler(tokenizer_.get(), kVocabSize, 1);
  std::shared_ptr<const CompiledGrammar> grammar = CompileNow(compiler, Constant("p"))->grammar();
  const size_t bytes_of_one = compiler.memory_bytes();
  EXPECT_GT(bytes_of_one, 0u);
  CompileNow(compiler, Constant("q"));
  EXPECT_EQ(compiler.num_cached(), 2u);
  grammar = nullptr;
  const GrammarFuturePtr last = CompileNow(compiler, Constant("r"));
  EXPECT_EQ(compiler.num_cached(), 1u);
  EXPECT_LT(compiler.memory_bytes(), 2 * bytes_of_one);
}

}  // namespace
}  // namespace vllm
