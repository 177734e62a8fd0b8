// Builds the pattern that Split and Replace carry in tokenizer.json: {"String": "..."} or {"Regex": "..."}.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm {

// `where` names the owner in errors.
std::unique_ptr<TextPattern> MakePattern(const nlohmann::json& json, const std::string& where);

// By how much replacing the matches of a pattern by content can lengthen a text at most.
double ReplaceGrowth(const nlohmann::json& pattern, std::string_view content);

// text with every match replaced by content.
std::string ReplaceMatches(const TextPattern& pattern, std::string_view text, std::string_view content);

}  // namespace vllm
