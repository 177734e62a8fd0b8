// The "pattern" field of Split and Replace in tokenizer.json: {"String": "..."} or {"Regex": "..."}.
// Pure functions, any thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm::tokenizer {

// Throws TokenizerError. `where` names the owner in errors.
std::unique_ptr<TextPattern> MakePattern(const nlohmann::json& json, const std::string& where);

// Returns the largest factor by which replacing the matches of `pattern` with `content` can lengthen a text.
double ReplaceGrowth(const nlohmann::json& pattern, std::string_view content);

// Returns `text` with every match replaced by `content`.
std::string ReplaceMatches(const TextPattern& pattern, std::string_view text, std::string_view content);

}  // namespace vllm::tokenizer
