// Chooses a GGUF file of a repository by its tag, as llama.cpp and ollama do. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/hub/model_reference.h"

namespace vllm::app {

// Returns the tag of a GGUF file: the quantization in its name, such as "Q4_K_M" or "UD-Q4_K_XL", or an empty string if
// its name contains none.
std::string GgufTagOf(std::string_view path);

// Returns true for a .gguf file that is a language model: neither a part of a split model other than the first, nor a
// vision encoder (mmproj), an importance matrix or a draft model.
bool IsGgufModel(const std::string& path);

// Returns the distinct tags of the models among `paths`, sorted. A model without a tag is listed by its path.
std::vector<std::string> GgufTags(const std::vector<std::string>& paths);

// Chooses a model among the paths of a repository and returns its file, or all parts of a split model in order:
// - by a path or file name that ends with .gguf;
// - by a quantization in any letter case. A file with exactly this tag is preferred to one whose path only contains
//   the tag before a '.' or '-';
// - without a tag, or with "latest": Q4_K_M, else Q8_0, else the first path in alphabetical order.
// Throws ModelError, which lists the tags that exist, if no file matches or a part is missing.
std::vector<std::string> ChooseGguf(const std::vector<std::string>& paths, const ModelReference& reference);

}  // namespace vllm::app
