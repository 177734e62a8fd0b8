// Typed access to the fields of the small JSON objects in tokenizer.json, tokenizer_config.json and added_tokens.json.
// Errors are TokenizerErrors that name the object and the field. Include this from .cc files only: it includes the JSON
// library. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::tokenizer {

// Returns the value of a required field. `where` names the object in error messages.
inline const nlohmann::json& Field(const nlohmann::json& object, const char* key, const std::string& where) {
  if (!object.is_object()) throw TokenizerError("reading " + where + ": not a JSON object");
  const auto it = object.find(key);
  if (it == object.end()) throw TokenizerError("reading " + where + ": field " + key + " is missing");
  return *it;
}

inline std::string StringField(const nlohmann::json& object, const char* key, const std::string& where) {
  const nlohmann::json& value = Field(object, key, where);
  if (!value.is_string()) throw TokenizerError("reading " + where + ": field " + key + " is not a string");
  return value.get<std::string>();
}

inline bool BoolField(const nlohmann::json& object, const char* key, const std::string& where) {
  const nlohmann::json& value = Field(object, key, where);
  if (!value.is_boolean()) throw TokenizerError("reading " + where + ": field " + key + " is not true or false");
  return value.get<bool>();
}

// Returns `fallback` if the field is absent or null.
inline bool BoolField(const nlohmann::json& object, const char* key, const std::string& where, bool fallback) {
  if (!object.contains(key) || object[key].is_null()) return fallback;
  return BoolField(object, key, where);
}

// Returns an integer in [0, limit).
inline int64_t IntegerField(const nlohmann::json& object, const char* key, const std::string& where, int64_t limit) {
  const nlohmann::json& value = Field(object, key, where);
  if (!value.is_number_integer() || !(value.get<int64_t>() >= 0 && value.get<int64_t>() < limit)) {
    throw TokenizerError("reading " + where + ": field " + key + " is not an integer in 0.." +
                         std::to_string(limit - 1));
  }
  return value.get<int64_t>();
}

inline const nlohmann::json& ArrayField(const nlohmann::json& object, const char* key, const std::string& where) {
  const nlohmann::json& value = Field(object, key, where);
  if (!value.is_array()) throw TokenizerError("reading " + where + ": field " + key + " is not a list");
  return value;
}

// Returns the token object[key], which is stored as "<s>" or as {"content": "<s>", ...}, or nullopt if it is absent
// or has another form.
inline std::optional<std::string> TokenField(const nlohmann::json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  if (it->is_string()) return it->get<std::string>();
  if (!it->is_object()) return std::nullopt;
  const auto content = it->find("content");
  if (content == it->end() || !content->is_string()) return std::nullopt;
  return content->get<std::string>();
}

}  // namespace vllm::tokenizer
