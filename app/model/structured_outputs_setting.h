// --json-schema and --schema: the JSON Schema that answers must match. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/cli/settings.h"
#include "engine/request/sampling_params.h"

namespace vllm::app {

// Returns the value of --json-schema or --schema, or nullopt if neither is set, or if the value is empty or "off". If
// two sources set one each, the source of higher precedence counts. Throws ConfigError if one source sets both, if the
// schema is invalid or not supported, or if the file cannot be read or exceeds 1 MiB; ResourceError.
std::optional<StructuredOutputsParams> ReadSchema(const Settings& settings);

// Converts the short form of `llm --schema` to a JSON Schema of an object that has exactly the named members:
//   FIELDS = FIELD ("," | line break) ...     with a line break in the text, commas do not separate fields
//   FIELD  = NAME [TYPE] [":" DESCRIPTION]
//   TYPE   = str | int | float | bool, each also with [] at the end for an array; default: str
// Example: "name, age int, tags str[]". Throws ConfigError `--schema: <why>`.
std::string SchemaOfFields(std::string_view fields);

}  // namespace vllm::app
