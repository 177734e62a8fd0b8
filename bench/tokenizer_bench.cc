// Benchmarks a real tokenizer: detokenization per token, and encoding. Uses the tokenizer of the bundled model, or the
// tokenizer.json named by $VLLMCLI_TOKENIZER.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/frontend/incremental_detokenizer.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace vllm {
namespace {

const tokenizer::Tokenizer& TheTokenizer() {
  static const std::unique_ptr<tokenizer::Tokenizer> tokenizer = [] {
    const char* path = std::getenv("VLLMCLI_TOKENIZER");
    return tokenizer::LoadTokenizerJson(path != nullptr ? path : VLLMCLI_SOURCE_DIR "/app/guide_model/tokenizer.json");
  }();
  return *tokenizer;
}

std::string SomeText() {
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "Row " + std::to_string(i) +
            " of the batch was answered; its tokens are streamed as whole characters, d\xc3\xa9j\xc3\xa0 vu.\n";
  }
  return text;
}

void BM_Detokenize(benchmark::State& state) {
  const std::vector<int32_t> ids = TheTokenizer().Encode(SomeText(), false);
  SamplingParams params;
  if (state.range(0) != 0) params.stop = {"</answer>", "\n\n\n"};
  int64_t num_tokens = 0;
  for (auto _ : state) {
    IncrementalDetokenizer detokenizer(TheTokenizer(), params, {});
    for (const int32_t id : ids) {
      detokenizer.Append(std::span(&id, 1));
      benchmark::DoNotOptimize(detokenizer.GetNextOutputText(false, true));
    }
    num_tokens += static_cast<int64_t>(ids.size());
  }
  state.SetItemsProcessed(num_tokens);
  state.counters["per token"] =
      benchmark::Counter(static_cast<double>(num_tokens), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Detokenize)->ArgName("stop strings")->Arg(0)->Arg(1);

void BM_Encode(benchmark::State& state) {
  const std::string text = SomeText();
  for (auto _ : state) benchmark::DoNotOptimize(TheTokenizer().Encode(text, false));
  state.SetBytesProcessed(static_cast<int64_t>(text.size()) * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(BM_Encode);

}  // namespace
}  // namespace vllm

BENCHMARK_MAIN();
