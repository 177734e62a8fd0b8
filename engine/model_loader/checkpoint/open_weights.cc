#include "engine/model_loader/checkpoint/open_weights.h"

#include <filesystem>
#include <system_error>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/checkpoint/dummy_weights.h"
#include "engine/model_loader/checkpoint/stacked_experts.h"
#include "engine/model_loader/gguf/weights.h"
#include "engine/model_loader/hf/safetensors.h"
#include "engine/model_loader/pooling/sentence_transformers.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr const char* kSuggestion = "nearest that runs: a checkpoint of the model in safetensors, or a GGUF file of it";

// Returns the name of a file with the extension of a pickle format, or an empty string.
std::string FindPickle(const std::string& directory) {
  for (const std::string& name : tokenizer::NamesInDirectory(directory)) {
    for (const char* extension : {".bin", ".pt", ".pth", ".ckpt"}) {
      if (name.ends_with(extension)) return name;
    }
  }
  return "";
}

}  // namespace

std::unique_ptr<WeightSource> OpenWeights(const VllmConfig& config) {
  const std::string& directory = config.model.directory;
  if (config.load.load_format == LoadFormat::kDummy) {
    return std::make_unique<DummyWeights>(config.model.dtype, config.model.tie_word_embeddings);
  }
  std::string what = "weights of " + Escape(directory) + ": ";
  if (!config.model.gguf_file.empty()) return std::make_unique<GgufWeights>(config.model);
  std::error_code error;
  // A dangling symlink counts as present: the error from opening it is more helpful than "neither ... nor ...".
  auto present = [&](const char* name) {
    return std::filesystem::symlink_status(std::filesystem::path(directory) / name, error).type() !=
           std::filesystem::file_type::not_found;
  };
  if (present(kSingleFile)) {
    return AddDenseModules(config.model, std::make_unique<StackedExperts>(
                                             std::make_unique<SafetensorsFile>(directory + "/" + kSingleFile)));
  }
  if (present(kIndexFile)) {
    return AddDenseModules(
        config.model, std::make_unique<StackedExperts>(std::make_unique<ShardedSafetensors>(directory, kIndexFile)));
  }
  if (std::string pickle = FindPickle(directory); !pickle.empty()) {
    throw ModelError(what +
                         "there are only pickle files, which can run code when they are opened; convert them to "
                         "safetensors (found " +
                         Escape(pickle) + ")",
                     kSuggestion);
  }
  throw ModelError(what + "neither " + kSingleFile + " nor " + kIndexFile + " exists", kSuggestion);
}

}  // namespace vllm
