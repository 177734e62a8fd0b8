// Makes a Tokenizer from the files of a model directory. Pure functions of the files, any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace vllm::tokenizer {

// Reads the first of these files that the directory has: tokenizer.json, tokenizer.model, tiktoken.model, *.tiktoken,
// vocab.json with merges.txt. If there is no tokenizer.json, the added tokens and other settings come from
// tokenizer_config.json and added_tokens.json. Throws TokenizerError.
std::unique_ptr<Tokenizer> LoadTokenizer(const std::string& directory);
// Returns true if LoadTokenizer would find a file to read.
bool HasTokenizer(const std::string& directory);
// Returns the file that LoadTokenizer reads because tokenizer.json is missing, as text for a message: a file name, or
// "vocab.json with merges.txt". Returns "" if the directory has tokenizer.json or no tokenizer at all.
std::string FallbackTokenizerFile(const std::string& directory);

// Both throw TokenizerError if the JSON is damaged or needs an unsupported feature. LoadTokenizerJson also throws it if
// the file cannot be read.
std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path);
std::unique_ptr<Tokenizer> ParseTokenizerJson(std::string_view json, const std::string& name_for_errors);

// Loads a byte-level BPE tokenizer in the format of GPT-2 and OPT. tokenizer_config.json, whose path may be empty,
// provides add_bos_token, add_prefix_space and the special and added tokens. Throws TokenizerError.
std::unique_ptr<Tokenizer> LoadVocabAndMerges(const std::string& vocab_path, const std::string& merges_path,
                                              const std::string& tokenizer_config_path);

}  // namespace vllm::tokenizer
