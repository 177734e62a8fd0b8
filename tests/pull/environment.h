// ScopedVariable: sets or removes an environment variable for one test. Owned by the test; no other thread may run.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace vllm::app {

class ScopedVariable {
 public:
  // Removes the variable if `value` is null.
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~ScopedVariable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace vllm::app
