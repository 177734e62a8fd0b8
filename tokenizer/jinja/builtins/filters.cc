#include "tokenizer/jinja/builtins/filters.h"

namespace vllm::tokenizer::jinja {
namespace {

Filter FindFilter(std::string_view name) {
  if (Filter found = FindTextFilter(name)) return found;
  if (Filter found = FindMarkupFilter(name)) return found;
  if (Filter found = FindSequenceFilter(name)) return found;
  return FindNumberFilter(name);
}

}  // namespace

bool IsFilter(std::string_view name) { return FindFilter(name) != nullptr; }

Value CallFilter(Runtime& runtime, std::string_view name, const Value& input, const Args& args) {
  const Filter filter = FindFilter(name);
  if (filter == nullptr) throw EvalError("no filter named '" + std::string(name.substr(0, 40)) + "'");
  runtime.budget.Spend(4);
  return filter(runtime, input, args);
}

}  // namespace vllm::tokenizer::jinja
