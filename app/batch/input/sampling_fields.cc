#include "app/batch/input/sampling_fields.h"

#include <charconv>
#include <limits>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/input/batch_row.h"
#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;
using Kind = StructuredOutputsParams::Kind;

std::vector<int32_t> IdsField(const std::string& name, const Json& value) {
  if (!value.is_array()) FailField(name, "must be a list of token ids", value);
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const Json& element : value) {
    const int64_t id = IntegerField(name, element);
    if (!(id >= 0 && id <= std::numeric_limits<int32_t>::max())) FailField(name, "not a token id", element);
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

std::vector<std::pair<int32_t, float>> BiasField(const std::string& name, const Json& value) {
  if (!value.is_object()) FailField(name, "must be an object that maps token ids to numbers", value);
  std::vector<std::pair<int32_t, float>> biases;
  for (const auto& [key, bias] : value.items()) {
    int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) FailField(name, "keys must be token ids", Json(key));
    biases.emplace_back(id, static_cast<float>(NumberField(name, bias)));
  }
  return biases;
}

// A schema is an object, true, false, or the text of one.
std::string SchemaField(const std::string& name, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object() && !value.is_boolean()) FailField(name, "must be a JSON Schema", value);
  return DumpJson(value);
}

// Returns the constraint if `key` is the name of one.
std::optional<StructuredOutputsParams> ConstraintField(const std::string& key, const std::string& name,
                                                       const Json& value) {
  if (key == "json") return StructuredOutputsParams{SchemaField(name, value)};
  if (key == "json_object") {
    if (value != true) FailField(name, "must be true", value);
    return StructuredOutputsParams{kAnyJsonObject};
  }
  if (key == "regex") return StructuredOutputsParams{TextField(name, value), Kind::kRegex};
  if (key == "grammar") return StructuredOutputsParams{TextField(name, value), Kind::kGrammar};
  if (key == "choice") {
    if (!value.is_array()) FailField(name, "must be a list of strings", value);
    return StructuredOutputsParams{"", Kind::kChoice, TextsField(name, value)};
  }
  if (key != "structural_tag") return std::nullopt;
  if (!value.is_string() && !value.is_object()) FailField(name, "must be an object", value);
  return StructuredOutputsParams{value.is_string() ? value.get<std::string>() : DumpJson(value), Kind::kStructuralTag};
}

}  // namespace

StructuredOutputsParams StructuredOutputsField(const std::string& name, const Json& value) {
  if (!value.is_object()) FailField(name, "must be an object", value);
  std::optional<StructuredOutputsParams> params;
  bool any_order = false;
  bool flexible_whitespace = false;
  for (const auto& [key, constraint] : value.items()) {
    if (constraint.is_null()) continue;
    const std::string field = name + "." + key.substr(0, 64);
    if (key == "any_order") {
      any_order = SwitchField(field, constraint);
    } else if (key == "disable_any_whitespace") {
      flexible_whitespace = !SwitchField(field, constraint);
    } else if (auto found = ConstraintField(key, field, constraint)) {
      if (params) throw RowError("invalid_row", name + ": must have only one constraint");
      params = std::move(found);
    } else {
      throw RowError("invalid_row", field + ": not supported");
    }
  }
  if (!params) throw RowError("invalid_row", name + ": must have a constraint");
  params->any_order = any_order;
  params->flexible_whitespace = flexible_whitespace;
  return *params;
}

Json StructuredOutputsJson(const StructuredOutputsParams& params) {
  Json json = Json::object();
  switch (params.kind) {
    case Kind::kJson:
      json["json"] = params.text;
      break;
    case Kind::kRegex:
      json["regex"] = params.text;
      break;
    case Kind::kChoice:
      json["choice"] = params.choice;
      break;
    case Kind::kGrammar:
      json["grammar"] = params.text;
      break;
    case Kind::kStructuralTag:
      json["structural_tag"] = params.text;
      break;
    case Kind::kToolCalls:
      break;  // comes from the tools, and is no field
  }
  if (params.any_order) json["any_order"] = true;
  if (params.flexible_whitespace) json["disable_any_whitespace"] = false;
  return json;
}

std::optional<StructuredOutputsParams> ResponseFormatField(const Json& value) {
  const std::string name = "response_format";
  if (!value.is_object()) FailField(name, "must be an object", value);
  const std::string type = TextField(name + ".type", value.value("type", Json()));
  if (type == "text") return std::nullopt;
  if (type == "json_object") return StructuredOutputsParams{kAnyJsonObject};
  if (type == "structural_tag") return StructuredOutputsParams{DumpJson(value), Kind::kStructuralTag};
  if (type != "json_schema") {
    FailField(name + ".type", "must be text, json_object, json_schema or structural_tag", Json(type));
  }
  const Json format = value.value("json_schema", Json());
  if (!format.is_object()) FailField(name + ".json_schema", "must be an object", format);
  // `strict` changes nothing: a schema is enforced or rejected.
  return StructuredOutputsParams{SchemaField(name + ".json_schema.schema", format.value("schema", Json()))};
}

void FailField(const std::string& name, const char* why, const Json& value) {
  std::string shown =
      value.is_structured() ? value.type_name() : value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (shown.size() > 64) shown = shown.substr(0, 64) + "...";
  throw RowError("invalid_row", name + ": " + why + " (" + shown + ")");
}

int64_t IntegerField(const std::string& name, const Json& value) {
  if (value.is_number_unsigned()) {
    if (value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      FailField(name, "out of range", value);
    }
    return value.get<int64_t>();
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= -9e15 && number <= 9e15 && number == static_cast<double>(static_cast<int64_t>(number))) {
      return static_cast<int64_t>(number);
    }
  }
  FailField(name, "must be a whole number", value);
}

double NumberField(const std::string& name, const Json& value) {
  if (!value.is_number()) FailField(name, "must be a number", value);
  return value.get<double>();
}

bool SwitchField(const std::string& name, const Json& value) {
  if (!value.is_boolean()) FailField(name, "must be true or false", value);
  return value.get<bool>();
}

std::string TextField(const std::string& name, const Json& value) {
  if (!value.is_string()) FailField(name, "must be a string", value);
  return value.get<std::string>();
}

std::vector<std::string> TextsField(const std::string& name, const Json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) FailField(name, "must be a string or a list of strings", value);
  std::vector<std::string> texts;
  for (const Json& element : value) texts.push_back(TextField(name, element));
  return texts;
}

bool SetSamplingField(const std::string& name, const Json& value, SamplingParams& params) {
  const auto number = [&](double& field) {
    if (!value.is_null()) field = NumberField(name, value);
    return true;
  };
  const auto integer = [&](int64_t& field) {
    if (!value.is_null()) field = IntegerField(name, value);
    return true;
  };
  const auto optional_integer = [&](std::optional<int64_t>& field) {
    if (!value.is_null()) field = IntegerField(name, value);
    return true;
  };
  const auto boolean = [&](bool& field) {
    if (!value.is_null()) field = SwitchField(name, value);
    return true;
  };
  if (name == "n") return integer(params.n);
  if (name == "best_of") return optional_integer(params.best_of);
  if (name == "use_beam_search") return boolean(params.use_beam_search);
  if (name == "beam_width") return optional_integer(params.beam_width);
  if (name == "length_penalty") {
    if (!value.is_null()) params.length_penalty = NumberField(name, value);
    return true;
  }
  if (name == "presence_penalty") return number(params.presence_penalty);
  if (name == "frequency_penalty") return number(params.frequency_penalty);
  if (name == "repetition_penalty") return number(params.repetition_penalty);
  if (name == "temperature") return number(params.temperature);
  if (name == "top_p") return number(params.top_p);
  if (name == "top_k") return integer(params.top_k);
  if (name == "min_p") return number(params.min_p);
  if (name == "max_tokens") return optional_integer(params.max_tokens);
  if (name == "min_tokens") return integer(params.min_tokens);
  // The first is vLLM's name, the second that of other servers and of this program's flag.
  if (name == "thinking_token_budget" || name == "thinking_budget") {
    return optional_integer(params.thinking_token_budget);
  }
  if (name == "logprobs") return optional_integer(params.logprobs);
  if (name == "prompt_logprobs") return optional_integer(params.prompt_logprobs);
  if (name == "ignore_eos") return boolean(params.ignore_eos);
  if (name == "skip_special_tokens") return boolean(params.skip_special_tokens);
  if (name == "include_stop_str_in_output") return boolean(params.include_stop_str_in_output);
  if (name == "detokenize") return boolean(params.detokenize);
  if (name == "seed") {
    if (value.is_null()) return true;
    if (value.is_number_unsigned()) {
      params.seed = value.get<uint64_t>();
    } else {
      const int64_t seed = IntegerField(name, value);
      // In vLLM -1 means no seed. Other negative numbers are valid seeds.
      params.seed = seed == -1 ? std::nullopt : std::optional<uint64_t>(static_cast<uint64_t>(seed));
    }
    return true;
  }
  if (name == "stop") {
    if (!value.is_null()) params.stop = TextsField(name, value);
    return true;
  }
  if (name == "structured_outputs") {
    if (!value.is_null()) params.structured_outputs = StructuredOutputsField(name, value);
    return true;
  }
  if (name == "response_format") {
    if (!value.is_null()) params.structured_outputs = ResponseFormatField(value);
    return true;
  }
  if (name == "bad_words") {
    if (!value.is_null()) params.bad_words = TextsField(name, value);
    return true;
  }
  if (name == "stop_token_ids") {
    if (!value.is_null()) params.stop_token_ids = IdsField(name, value);
    return true;
  }
  if (name == "allowed_token_ids") {
    if (!value.is_null()) params.allowed_token_ids = IdsField(name, value);
    return true;
  }
  if (name == "logit_bias") {
    if (!value.is_null()) params.logit_bias = BiasField(name, value);
    return true;
  }
  return false;
}

}  // namespace vllm::app
