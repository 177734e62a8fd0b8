// Jinja2's filters, `value | name(args)`. Pure functions, except that filters consume iterators; only one thread may
// use a runtime.
#pragma once

#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

using Filter = Value (*)(Runtime& runtime, const Value& input, const Args& args);

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

bool IsFilter(std::string_view name);
// Returns the filtered value. Throws EvalError, also if there is no such filter.
Value CallFilter(Runtime& runtime, std::string_view name, const Value& input, const Args& args);

// Each function searches one file: text_filters.cc, markup_filters.cc, sequence_filters.cc or number_filters.cc. It
// returns null if the file has no such filter.
Filter FindTextFilter(std::string_view name);
Filter FindMarkupFilter(std::string_view name);
Filter FindSequenceFilter(std::string_view name);
Filter FindNumberFilter(std::string_view name);

}  // namespace vllm::tokenizer::jinja
