// Reads a model's files other than its weights: configuration, tokenizer and chat template, from a Hugging Face model
// directory or a GGUF file. Each function reads only the files that it needs. Functions that take Settings,
// and ReadFileOrStdin, belong to the main thread; any thread may call the others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/cli/settings.h"
#include "app/installed/model_location.h"
#include "app/model/prompt_renderer.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// Returns the model that the settings name. If it is a repository that is not installed, or whose download is
// incomplete although the command needs the weights, offers to download it on a terminal (offer_download.h). Throws
// what FindModel and OfferDownload throw.
ModelLocation LocateModel(const Settings& settings);

// Returns the path of a LoRA adapter. If it is a repository that is not installed, offers to download it on a terminal.
// Throws what FindAdapter and OfferDownload throw.
std::string LocateAdapter(const std::string& name);

// Read config.json and generation_config.json, or the metadata of the GGUF file instead. Throw ModelError.
ModelConfig ReadModelConfig(const ModelLocation& location);
GenerationConfig ReadGenerationConfig(const ModelLocation& location);

// Loads the tokenizer from the GGUF file or the directory. Throws ModelError or TokenizerError.
std::shared_ptr<const tokenizer::Tokenizer> LoadModelTokenizer(const ModelLocation& location);
bool ModelHasTokenizer(const ModelLocation& location);
// Returns a warning if the model has no tokenizer, or only a fallback, which may tokenize text differently than in
// training. Returns "" otherwise.
std::string TokenizerWarning(const ModelLocation& location);

// Returns a warning if the rotary scaling of the model differs from that of transformers at the length that the model
// has been given. Returns "" otherwise.
std::string RopeWarning(const ModelConfig& model);

// Returns the values of --template-var as a JSON object, or "" if there are none. Throws ConfigError.
std::string TemplateVariables(const Settings& settings);

// Loads the file of --chat-template, or else the model's chat template. Returns null if there is none or it is empty.
// Throws ConfigError if a file cannot be read, if --template-var or --tools is invalid, or if run or chat has a
// --system message that the template does not support. Throws ChatTemplateError, ModelError, ResourceError.
std::unique_ptr<PromptRenderer> LoadPromptRenderer(const Settings& settings, const ModelLocation& location);

// Reads a text file named on the command line; "-" is standard input. Throws ConfigError if it cannot be read, is not a
// regular file or is longer than `max_bytes`, and ResourceError if memory or descriptors run out.
std::string ReadFileOrStdin(const std::string& path, size_t max_bytes);

}  // namespace vllm::app
