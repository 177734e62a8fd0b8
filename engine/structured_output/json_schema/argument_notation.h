// ArgumentNotation: how the members of an object are written in a notation other than JSON, such as the arguments of a
// tool call between tags. AddJsonArguments makes the rules of an object that a schema allows. One thread per builder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/json_schema/schema_compiler.h"

namespace vllm {

// A member of the object, with the values that it may have.
struct JsonArgument {
  std::string name;                             // "": keys that are not declared
  RegexId key = RegexStore::kNothing;           // the texts of the key
  RegexId strings = RegexStore::kNothing;       // the strings, without escapes
  RegexId json_strings = RegexStore::kNothing;  // the same as in JSON, without the quotation marks
  // Return the symbols of all values, and of those that are not strings, as JSON.
  std::function<SymbolId()> json;
  std::function<SymbolId()> json_without_strings;
  bool has_true = false, has_false = false;
  // Whether every value of a type is allowed.
  bool any_null = false, any_boolean = false, any_integer = false, any_number = false, any_string = false,
       any_array = false, any_object = false;
};

class ArgumentNotation {
 public:
  struct Member {
    SymbolId first_key, next_key;  // the text up to the value, for the first member of the object and for others
    SymbolId value;                // the rest
  };
  virtual ~ArgumentNotation() = default;
  // The whole object if it has no members; the text after the last member.
  virtual SymbolId Empty() = 0;
  virtual SymbolId Close() = 0;
  // A text that ends a value where the parser finds it, and which JSON in the value therefore does not contain except
  // with an escape; "": none.
  virtual std::string_view EndText() const { return ""; }
  // Throws RequestError if the key cannot be written.
  virtual Member Write(const JsonArgument& argument) = 0;
};

// Adds the rules of the objects that a schema allows. Throws like AddJsonSchema.
SymbolId AddJsonArguments(GrammarBuilder& builder, std::string_view schema, const JsonSchemaOptions& options,
                          ArgumentNotation& notation, std::vector<std::string>* warnings);

}  // namespace vllm
