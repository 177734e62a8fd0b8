// Makes a Tokenizer from the files of a model directory. Any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace vllm::tokenizer {

// Reads the first of tokenizer.json, tokenizer.model, *.tiktoken, and vocab.json with merges.txt that the directory
// has. For the last three, tokenizer_config.json and added_tokens.json list the added tokens. Throws TokenizerError.
std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& directory);
// Returns true if LoadTokenizer would find a file to read.
bool HasTokenizer(const std::string& directory);
// Returns the name of the file that LoadTokenizer reads because tokenizer.json is missing. Returns "" if tokenizer.json
// exists or no other format does.
std::string FallbackTokenizerFile(const std::string& directory);

// Both throw TokenizerError if the file is damaged or needs an unsupported feature.
std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path);
std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string_view json, const std::string& name_for_errors);

// Loads the files of GPT-2 and OPT, which have no tokenizer.json. tokenizer_config.json, whose path may be empty,
// gives add_bos_token, add_prefix_space and the special tokens. Throws TokenizerError.
std::unique_ptr<Tokenizer> LoadVocabAndMerges(const std::string& vocab_path, const std::string& merges_path,
                                              const std::string& tokenizer_config_path);

}  // namespace vllm::tokenizer
