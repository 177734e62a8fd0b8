// ValueSet: a set of JSON values, as a union over types. Objects and arrays are described by their members, which are
// sets of values as well, named by ids, because schemas are recursive. Plain values, owned by SchemaAlgebra.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// A set of values that SchemaAlgebra knows.
using ValueSetId = uint32_t;

struct ObjectSet {
  struct Property {
    std::string name;
    ValueSetId value;
    bool is_required = false;
  };
  // Other keys, by the texts inside the quotation marks. The sets of keys are disjoint and, with the names of the
  // properties, contain every key that is allowed.
  struct OtherKeys {
    RegexId keys;
    ValueSetId value;
  };
  std::vector<Property> properties;  // in the order of the schema
  std::vector<OtherKeys> others;
  // Of each of these sets of keys, at least one key is present.
  std::vector<RegexId> needed_keys;
  uint64_t min_properties = 0;
  uint64_t max_properties = std::numeric_limits<uint64_t>::max();
};

struct ArraySet {
  std::vector<ValueSetId> prefix;
  ValueSetId items = 0;  // after the prefix
  uint64_t min_items = 0;
  uint64_t max_items = std::numeric_limits<uint64_t>::max();
  // min to max elements are in `value`.
  struct Contains {
    ValueSetId value;
    uint64_t min = 1;
    uint64_t max = std::numeric_limits<uint64_t>::max();
  };
  std::optional<Contains> contains;
  bool has_unique_items = false;
};

struct ValueSet {
  bool has_null = false, has_false = false, has_true = false;
  RegexId numbers = RegexStore::kNothing;  // canonical texts, see number_text.h
  RegexId strings = RegexStore::kNothing;  // the texts inside the quotation marks
  std::vector<ObjectSet> objects;          // a union
  bool is_list = false;                    // of the values of enum or const, which are written in one way
  bool has_integer_type = false;           // all numbers are of the type integer, in which draft 4 has no fractions
  // If not null, all strings are among these.
  std::shared_ptr<const std::vector<std::string>> listed_strings;
  std::vector<ArraySet> arrays;  // a union
};

}  // namespace vllm
