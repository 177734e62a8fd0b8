// Jinja2's filters (value | name(args)). One thread per runtime.
#pragma once

#include <string_view>

#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

using Filter = Value (*)(Runtime& runtime, const Value& input, const Args& args);

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

bool IsFilter(std::string_view name);
// Throws EvalError, also when there is no such filter.
Value CallFilter(Runtime& runtime, std::string_view name, const Value& input, const Args& args);

// text_filters.cc, markup_filters.cc, sequence_filters.cc, number_filters.cc: null when absent.
Filter FindTextFilter(std::string_view name);
Filter FindMarkupFilter(std::string_view name);
Filter FindSequenceFilter(std::string_view name);
Filter FindNumberFilter(std::string_view name);

}  // namespace vllm::jinja
