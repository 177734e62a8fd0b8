// A model on disk whose answer a test chooses, so that the real program can be tested with any answer. Its weights make
// each token of the answer lead to the next one, and the last token to the end of the sequence. Any thread.
#pragma once

#include <cstddef>
#include <string>

namespace vllm::testing_support {

// The size of tokens that end where the texts of calls may have spaces. If they ended elsewhere, the constraint of a
// call would replace the rest of a forced text by the tokens of the tokenizer, which are bytes.
inline constexpr size_t kCallTokens = 0;

// Creates `directory`, writes a Hugging Face model there that answers every message with `answer`, and returns the
// path. Tokens have about `token_size` bytes, or more where the text repeats. Each byte that is not valid UTF-8 is a
// token, so no such byte may occur twice. Throws std::logic_error if `answer` cannot be split into different tokens.
std::string WriteScriptedModel(const std::string& directory, const std::string& answer, size_t token_size = 6);

// The same, with a template that shows tools and their calls as Hermes does. After the result of a tool, the model
// answers with `answer_to_tool`, which must have no token in common with `answer`.
std::string WriteScriptedToolModel(const std::string& directory, const std::string& answer,
                                   const std::string& answer_to_tool);

}  // namespace vllm::testing_support
