// The flags that constrain the text of answers: --json-schema, --schema, --regex and the others. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/cli/settings.h"
#include "engine/request/structured_outputs_params.h"

namespace vllm::app {

// Returns the constraint that the flags ask for, or nullopt if there is none. A value that is empty or "off" switches a
// constraint off. If several sources set one, the source of highest precedence counts. Throws ConfigError if one source
// sets more than one, if the constraint is invalid or not supported, or if a file cannot be read or exceeds 1 MiB;
// ResourceError.
std::optional<StructuredOutputsParams> ReadStructuredOutputs(const Settings& settings);

// If `name` is one of the constraints, which exclude each other, switches off those others that `source` has set.
void SwitchOffOthers(std::string_view name, SettingSource source, Settings& settings);

// Returns true for the flags that ReadStructuredOutputs reads.
bool IsStructuredOutputsFlag(std::string_view name);

// Returns true if `text` is meant as a file, and not as the name of a field: it contains a slash or ends with .json.
bool IsFileName(std::string_view text);

// Converts the short form of `llm --schema` to a JSON Schema of an object that has exactly the named members:
//   FIELDS = FIELD ("," | line break) ...     with a line break in the text, commas do not separate fields
//   FIELD  = NAME [TYPE] [":" DESCRIPTION]
//   TYPE   = str | int | float | bool, each also with [] at the end for an array; default: str
// Example: "name, age int, tags str[]". Throws ConfigError `--schema: <why>`, also for a name that IsFileName.
std::string SchemaOfFields(std::string_view fields);

}  // namespace vllm::app
