// A model on disk that answers with texts that a test chooses, so that the real program can be tested with any answer.
// Its weights make each token of a text lead to the next one, and the last to the end of the sequence. Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace vllm::testing_support {

// A message that contains the first string gets the second as its answer. Of several, the first one applies.
using Scripts = std::vector<std::pair<std::string, std::string>>;

// Writes a Hugging Face model to `directory`, which is created, and returns the path. A message that contains none of
// the words gets the answer of the last script. Each token of an answer has about `token_size` bytes. A byte that is
// not valid UTF-8 becomes one token, and may occur once in all answers.
std::string WriteScriptedModel(const std::string& directory, const Scripts& scripts, size_t token_size = 6);

}  // namespace vllm::testing_support
