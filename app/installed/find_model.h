// Finds models and LoRA adapters: resolves the user's name for one to a directory or a GGUF file. Reads directories and
// the aliases, but no model files, and downloads nothing. The functions depend on the file system and the environment
// only; any thread.
#pragma once

#include <string>

#include "app/hub/model_reference.h"
#include "app/installed/model_location.h"
#include "engine/config/errors.h"

namespace vllm::app {

// The name is that of a repository of the hub which is not installed. The hint is the command that downloads it.
class MissingModelError : public ModelError {
 public:
  MissingModelError(const std::string& what, ModelReference reference);

  const ModelReference& reference() const { return reference_; }

 private:
  ModelReference reference_;
};

// Returns the command that downloads a model, such as "vllmcli pull OWNER/NAME:Q4_K_M --revision v1.0", for a shell.
std::string PullCommandText(const ModelReference& reference);

// Finds a model. `name` is the first of these that exists:
// - a directory or a .gguf file. A directory must contain exactly one GGUF model if load_format is "gguf", or if the
//   directory has neither config.json nor a tokenizer;
// - an alias (model_aliases.h);
// - a repository in the Hugging Face cache or in the own models directory, in any form that ParseModelReference
//   understands. A tag chooses a GGUF file by the rules of ChooseGguf. Without a tag, a repository with config.json or
//   a tokenizer is a Hugging Face model unless load_format is "gguf", and any other is the GGUF file that ChooseGguf
//   prefers;
// - a .gguf file directly in the own models directory ("FILE.gguf").
// An empty name is the bundled model, and so is "guide" unless a directory has this name.
//
// `load_format` is the value of --load-format, and `revision` that of --revision. Throws MissingModelError for
// OWNER/NAME and URLs of the hub, ModelError `model <name>: <why>` for other names, and ConfigError if `revision` is
// set for a path or differs from that in a URL, or if the aliases cannot be read.
ModelLocation FindModel(const std::string& name, const std::string& load_format = "auto",
                        const std::string& revision = "");

// Returns the path of an adapter. `name` is the first of these that exists:
// - a directory or a file;
// - a repository in the Hugging Face cache or in the own models directory, in any form that ParseModelReference
//   understands. A repository with adapter_config.json is a PEFT directory, unless there is a tag; any other is the
//   GGUF file that ChooseGguf chooses.
// Throws MissingModelError if `name` is OWNER/NAME or a URL of the hub, and ModelError `adapter <name>: <why>` for
// other names.
std::string FindAdapter(const std::string& name);

}  // namespace vllm::app
