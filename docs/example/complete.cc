// Completes a prompt with the engine as a library. Usage: complete MODEL_DIRECTORY PROMPT
#include <cstdio>
#include <exception>
#include <memory>

#include "engine/core/engine_core_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tokenizer/loaders/load_tokenizer.h"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL_DIRECTORY PROMPT\n", argv[0]);
    return 2;
  }
  vllm::VllmConfig config;
  config.model = vllm::LoadModelConfig(argv[1]);
  config.Finalize();
  const std::shared_ptr<const vllm::tokenizer::Tokenizer> tokenizer = vllm::tokenizer::LoadTokenizer(argv[1]);
  // Loads the weights and starts the engine's threads.
  vllm::LLMEngine engine(config, tokenizer, vllm::MakeThreadClient(config, vllm::MakeExecutor));

  vllm::SamplingParams params;
  params.temperature = 0.0;
  params.max_tokens = 32;
  params.output_kind = vllm::RequestOutputKind::kDelta;
  engine.AddRequest("request-0", vllm::TextPrompt{argv[2]}, params);
  while (engine.HasUnfinishedRequests()) {
    for (const vllm::RequestOutput& output : engine.Step()) {
      for (const vllm::CompletionOutput& completion : output.outputs) {
        std::fwrite(completion.text.data(), 1, completion.text.size(), stdout);
      }
    }
  }
  std::putchar('\n');
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
