// Reads the files with which sentence-transformers describes how a model's hidden states become a vector: modules.json,
// N_Pooling/config.json, N_Dense/config.json, sentence_bert_config.json and config_sentence_transformers.json. Accepts
// the forms of sentence-transformers 2 to 6. Pure functions of the files; any thread.
#pragma once

#include <memory>
#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Changes config.pooler as the files of config.directory say. Without modules.json, only reads the maximum length of a
// text, from tokenizer_config.json. Throws ModelError naming the file and the field, also if a module is unknown, and
// ResourceError like ReadTextFile.
void ReadSentenceTransformers(ModelConfig& config);

// Adds the tensors of the Dense modules to those of `weights`, as "<module>.linear.weight" and ".bias", which are the
// names in PoolerConfig::dense. Returns `weights` if there are none. Throws like SafetensorsFile.
std::unique_ptr<WeightSource> AddDenseModules(const ModelConfig& config, std::unique_ptr<WeightSource> weights);

}  // namespace vllm
