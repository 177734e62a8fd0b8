// ModelFiles: what a model's directory or GGUF file says beside its weights, each part read when asked for. Owned by a
// command.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/cli/settings.h"
#include "app/model/model_hub.h"
#include "app/model/prompt_renderer.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

// The model the settings name. Throws ModelError.
ModelLocation LocateModel(const Settings& settings);

// config.json's and generation_config.json's, or what the GGUF file's metadata say instead. Throw ModelError.
ModelConfig LoadModelConfig(const ModelLocation& location);
GenerationConfig LoadGenerationConfig(const ModelLocation& location);

// The GGUF file's own, or what the directory has. Throws ModelError or TokenizerError.
std::shared_ptr<const Tokenizer> LoadModelTokenizer(const ModelLocation& location);
bool ModelHasTokenizer(const ModelLocation& location);
// A warning: there is no tokenizer, or a fallback, which may split text otherwise than the model was trained with.
// Empty where all is well.
std::string TokenizerWarning(const ModelLocation& location);

// --template-var as the text of a JSON object, or empty. Throws ConfigError.
std::string TemplateVariables(const Settings& settings);

// --chat-template or the model's own; null when there is none. Throws ChatTemplateError, ConfigError.
std::unique_ptr<PromptRenderer> LoadPromptRenderer(const Settings& settings, const ModelLocation& location);

// Reads a text file from the command line, "-" for standard input. Throws ConfigError when it cannot be read, is not a
// regular file or is longer than max_bytes.
std::string ReadTextFile(const std::string& path, size_t max_bytes);

}  // namespace vllm
