// ModelReference: the name of a model on the Hugging Face hub, as users type or paste it. Plain values; the functions
// read only HF_ENDPOINT; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace vllm::app {

struct ModelReference {
  std::string repo_id;   // "OWNER/NAME", or "NAME" for the oldest repositories
  std::string tag;       // quantization of a GGUF file such as Q4_K_M, or the file's path; empty: none
  std::string revision;  // branch, tag or commit; empty: main

  friend bool operator==(const ModelReference&, const ModelReference&) = default;
};

// Parses one of the forms below. HOST is huggingface.co, hf.co or the host of HF_ENDPOINT; "https://" may be left out
// before it. Returns nullopt for other text, such as the path of a local file or a URL of another host.
//
//   NAME[:TAG]   OWNER/NAME[:TAG]   OWNER/NAME/FILE.gguf
//   https://HOST/OWNER/NAME[:TAG]
//   https://HOST/OWNER/NAME/tree/REVISION[/...]
//   https://HOST/OWNER/NAME/blob/REVISION/FILE.gguf   https://HOST/OWNER/NAME/resolve/REVISION/FILE.gguf
std::optional<ModelReference> ParseModelReference(std::string_view text);

// Returns OWNER/NAME[:TAG], without the revision. ParseModelReference understands it.
std::string ToString(const ModelReference& reference);

}  // namespace vllm::app
