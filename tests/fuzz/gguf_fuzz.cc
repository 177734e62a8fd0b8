// Fuzzes the GGUF reader. The tensors of an accepted file must be inside the file and together have at most as
// many bytes as the file. Its config, vocabulary and chat template must load or fail with ModelError or TokenizerError.
#include <span>

#include "engine/config/errors.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/gguf/tokenizer.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

template <typename Call>
void Try(Call call) {
  try {
    call();
  } catch (const ModelError&) {
  } catch (const tokenizer::TokenizerError&) {
  }
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  const std::span<const std::byte> data(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  Try([&] {
    const GgufFile file(data, "fuzz");
    size_t total = 0;
    for (const GgufTensor* tensor : file.tensors()) {
      Require(tensor->data.data() >= data.data() && tensor->data.size() <= data.size() &&
                  tensor->data.data() + tensor->data.size() <= data.data() + data.size(),
              "tensors are inside the file");
      total += tensor->data.size();
    }
    Require(total <= bytes.size(), "tensors have at most as many bytes as the file");
    Try([&] {
      const ModelConfig config = ReadGgufConfig(file);
      Require(config.vocab_size > 0 && config.hidden_size > 0 && config.head_dim > 0, "sizes are positive");
      Require(config.num_attention_heads % config.num_key_value_heads == 0,
              "the number of KV heads divides the number of attention heads");
      Require(config.layers.size() == static_cast<size_t>(config.num_hidden_layers), "every layer has a config");
      for (const int32_t id : config.eos_token_ids) Require(id >= 0 && id < config.vocab_size, "EOS ids are valid");
    });
    Try([&] { GgufChatTemplate(file.metadata()); });
    Try([&] { LoadGgufTokenizer(file); });
  });
}

}  // namespace vllm
