// The "pattern" field of Split and Replace in tokenizer.json: {"String": "..."} or {"Regex": "..."}.
// Pure functions, any thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm::tokenizer {

// Throws TokenizerError if the field is malformed. `where` names the object in error messages.
std::unique_ptr<TextPattern> MakePattern(const nlohmann::json& json, const std::string& where);

// Returns an upper bound on the factor by which Replace lengthens a text. A value below 1 means that every replacement
// shortens it. A pattern that matches the empty string may also add `content` once at the end of the text.
double ReplaceGrowth(const nlohmann::json& pattern, std::string_view content);

// Returns `text` with every match replaced by `content`.
std::string ReplaceMatches(const TextPattern& pattern, std::string_view text, std::string_view content);

}  // namespace vllm::tokenizer
