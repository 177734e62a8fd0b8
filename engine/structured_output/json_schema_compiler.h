// CompileJsonSchema: turns a JSON Schema (draft 2020-12) into a ByteGrammar that generates the JSON texts that the
// schema allows. The texts have no whitespace outside strings. The members of an object have the order of "properties";
// required members that "properties" lacks follow, then others. Integers have no fraction and no exponent. Pure
// function; any thread.
//
// Enforced keywords: type, enum, const, properties, required, additionalProperties, items, prefixItems, minItems,
// maxItems, minLength, maxLength, anyOf, and $ref to a place in the same schema ("#" or "#/..."). A schema that uses
// another keyword of draft 2020-12 that restricts values, or a combination that is not handled, is rejected.
// Annotations such as title and description, and unknown keywords, are ignored, as the specification says.
#pragma once

#include <cstddef>
#include <string_view>

#include "engine/structured_output/byte_grammar.h"

namespace vllm {

// The most bytes, levels of nesting and subschemas of a schema, and the largest minItems, maxItems, minLength and
// maxLength.
inline constexpr size_t kMaxJsonSchemaBytes = size_t{1} << 20;
inline constexpr int kMaxJsonSchemaDepth = 128;
inline constexpr size_t kMaxSubschemas = 100'000;
inline constexpr int64_t kMaxJsonSchemaCount = 10'000;

// Throws RequestError `JSON schema: <JSON Pointer>: <why>` if the schema is invalid, exceeds a limit, uses something
// that cannot be enforced, or allows no value.
ByteGrammar CompileJsonSchema(std::string_view schema);

}  // namespace vllm
