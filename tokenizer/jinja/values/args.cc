#include "tokenizer/jinja/values/args.h"

#include "tokenizer/jinja/values/operations.h"

namespace vllm::tokenizer::jinja {

const Value* Args::Keyword(std::string_view name) const {
  for (const auto& [key, value] : keywords) {
    if (key == name) return &value;
  }
  return nullptr;
}

BoundArgs::BoundArgs(const char* function, const Args& args, std::initializer_list<const char*> names,
                     size_t num_required)
    : function_(function), values_(names.size(), nullptr) {
  if (args.positional.size() > names.size()) {
    throw EvalError(std::string(function) + " got too many arguments (limit " + std::to_string(names.size()) + ")");
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [key, value] : args.keywords) {
    size_t index = 0;
    for (const char* name : names) {
      if (key == name) break;
      ++index;
    }
    if (index == names.size()) throw EvalError(std::string(function) + " got an unexpected keyword argument");
    if (values_[index] != nullptr) throw EvalError(std::string(function) + " got an argument twice");
    values_[index] = &value;
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (values_[i] == nullptr) {
      throw EvalError(std::string(function) + " is missing argument '" + *(names.begin() + i) + "'");
    }
  }
}

const Value* BoundArgs::NotNone(size_t index) const {
  const Value* value = values_[index];
  return value == nullptr || value->is(Kind::kNone) ? nullptr : value;
}

int64_t BoundArgs::Int(size_t index, int64_t fallback) const {
  const Value* value = values_[index];
  if (value == nullptr) return fallback;
  if (!value->is_integer()) {
    if (value->is_undefined()) throw EvalError(value->UndefinedMessage());
    throw EvalError(std::string(function_) + " needs an integer, not " + TypeName(value->kind()));
  }
  return value->integer();
}

bool BoundArgs::Bool(size_t index, bool fallback) const {
  return values_[index] == nullptr ? fallback : Truthy(*values_[index]);
}

const std::string& BoundArgs::Text(size_t index) const {
  const Value* value = values_[index];
  if (value == nullptr || !value->is_string()) {
    throw EvalError(std::string(function_) + " needs a string, not " +
                    (value == nullptr ? "nothing" : TypeName(value->kind())));
  }
  return value->text();
}

}  // namespace vllm::tokenizer::jinja
